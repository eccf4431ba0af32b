#include "lib/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace halfulp {
namespace {

struct Case {
  const char* pattern;
  const char* text;
};

TEST(Glob, Matches) {
  for (const auto& [pattern, text] : {Case{"", ""},
                                      {"*", ""},
                                      {"*", "model.layers.0/x"},
                                      {"model.*.weight", "model.layers.0.mlp.weight"},
                                      {"*.weight", ".weight"},
                                      {"a?c", "abc"},
                                      {"layers.[0-3].w", "layers.2.w"},
                                      {"[!a-c]x", "dx"},
                                      {"[]a]", "]"},
                                      {"[!]]", "a"},
                                      {"[a-]", "-"},
                                      {"[a", "[a"},
                                      {"**a**", "bab"},
                                      {"*ab*ab", "abxabab"},
                                      {"\xc3\x97*", "\xc3\x97y"}}) {
    EXPECT_TRUE(glob_match(pattern, text)) << pattern << " on " << text;
  }
}

TEST(Glob, DoesNotMatch) {
  for (const auto& [pattern, text] : {Case{"", "a"},
                                      {"a", ""},
                                      {"?", ""},
                                      {"*.weight", "model.weight_scale"},
                                      {"a?c", "ac"},
                                      {"layers.[0-3].w", "layers.4.w"},
                                      {"[!a-c]x", "bx"},
                                      {"[a-c]", "-"},
                                      {"[!]]", "]"},
                                      {"[]", "]"},
                                      {"abc", "abcd"},
                                      {"abcd", "abc"},
                                      {"*ab", "abc"}}) {
    EXPECT_FALSE(glob_match(pattern, text)) << pattern << " on " << text;
  }
}

// Matching every '*' again would take 2^30 steps here.
TEST(Glob, ManyStarsDoNotExplode) {
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(1000, 'a')));
}

}  // namespace
}  // namespace halfulp
