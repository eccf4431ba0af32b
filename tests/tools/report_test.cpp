// halfulp report, what comes before the browser: which results it takes, and what the file holds. What the page shows
// is in report_page.py.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/lib/test_files.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

namespace fs = std::filesystem;

class ReportTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return name;
  }
  ProgramRun report(std::vector<std::string> files) {
    files.insert(files.begin(), {"report", "-o", "page.html"});
    return run_halfulp(files, {.folder = folder_.path()});
  }
  std::string page() { return read_file(folder_ / "page.html"); }
  bool there_is_a_page() { return fs::exists(folder_ / "page.html"); }
  // What it says of one file of that text.
  std::string complaint(const std::string& text) {
    const ProgramRun run = report({write("r.json", text)});
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_FALSE(there_is_a_page());
    return run.err;
  }
  TemporaryDirectory folder_;
};

constexpr const char* kResult = R"({"schema": "halfulp.error/1", "results": [{"tensor": "w", "recipe": "nvfp4/te"}]})";

TEST_F(ReportTest, WritesOnePage) {
  const ProgramRun run = report({write("r.json", kResult)});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(page().starts_with("<!doctype html>"));
  EXPECT_TRUE(page().ends_with("</html>\n"));
}

TEST_F(ReportTest, SameResultsGiveSameBytes) {
  write("r.json", kResult);
  report({"r.json"});
  const std::string first = page();
  report({"r.json"});
  EXPECT_EQ(page(), first);
}

TEST_F(ReportTest, HoldsEveryFile) {
  write("r.json", kResult);
  write("s.json", R"({"schema": "halfulp.mma/1"})");
  ASSERT_EQ(report({"r.json", "s.json"}).exit_code, 0);
  EXPECT_NE(page().find("\"r.json\""), std::string::npos);
  EXPECT_NE(page().find("\"s.json\""), std::string::npos);
}

TEST_F(ReportTest, NoNameEndsTheData) {
  write("r.json", R"({"schema": "halfulp.error/1", "results": [{"tensor": "</script><!--<script>"}]})");
  ASSERT_EQ(report({"r.json"}).exit_code, 0);
  EXPECT_NE(page().find(R"("\u003c/script>\u003c!--\u003cscript>")"), std::string::npos);
}

TEST_F(ReportTest, NamesNoOtherPlace) {
  ASSERT_EQ(report({write("r.json", kResult)}).exit_code, 0);
  for (const char* reference : {"src=\"http", "href=\"http", "url(", "@import"})
    EXPECT_EQ(page().find(reference), std::string::npos) << reference;
}

TEST_F(ReportTest, HoldsTheLicenceOfTheCharts) {
  ASSERT_EQ(report({write("r.json", kResult)}).exit_code, 0);
  EXPECT_NE(page().find("Chart.js, Copyright (c)"), std::string::npos);
  EXPECT_NE(page().find("Permission is hereby granted, free of charge"), std::string::npos);
}

TEST_F(ReportTest, SaysWhichByteIsNoJson) {
  EXPECT_EQ(complaint(R"({"schema": halfulp})"),
            "halfulp report: r.json: byte 11: is not JSON; a result is what a verb prints with --json\n");
}

TEST_F(ReportTest, SaysThatJsonIsCutOff) {
  EXPECT_EQ(complaint(R"({"schema": "halfulp.err)"),
            "halfulp report: r.json: byte 23: the file ends within its JSON: was it cut off?\n");
}

TEST_F(ReportTest, RefusesAnEmptyFile) {
  EXPECT_EQ(complaint(""), "halfulp report: r.json: byte 0: the file ends within its JSON: was it cut off?\n");
}

TEST_F(ReportTest, RefusesJsonWithoutSchema) {
  for (const char* text : {"{}", "[1]", "3", R"({"schema": 1})"})
    EXPECT_NE(complaint(text).find("r.json: is JSON without \"schema\""), std::string::npos) << text;
}

TEST_F(ReportTest, RefusesTheSchemaOfAnotherProgram) {
  EXPECT_EQ(complaint(R"({"schema": "other.error/1"})"),
            "halfulp report: r.json: byte 11: its schema is 'other.error/1'; expected halfulp.VERB/1\n");
}

TEST_F(ReportTest, RefusesAnotherVersion) {
  EXPECT_EQ(complaint(R"({"schema": "halfulp.error/2"})"),
            "halfulp report: r.json: byte 11: its schema is 'halfulp.error/2'; this halfulp reads version 1\n");
}

TEST_F(ReportTest, SuggestsAVerb) {
  EXPECT_EQ(
      complaint(R"({"schema": "halfulp.eror/1"})"),
      "halfulp report: r.json: byte 11: its schema is 'halfulp.eror/1', which no verb of this halfulp prints; did you "
      "mean 'error'?\n");
}

TEST_F(ReportTest, RefusesWhatWouldOverflowTheStack) {
  const std::string deep(100'000, '[');
  EXPECT_NE(complaint(R"({"schema": "halfulp.error/1", "results": )" + deep).find("nested too deeply"),
            std::string::npos);
}

TEST_F(ReportTest, RefusesANumberBeyondDoubles) {
  EXPECT_NE(complaint(R"({"schema": "halfulp.error/1", "x": 1e999})").find("has a number"), std::string::npos);
}

TEST_F(ReportTest, RefusesAMissingFile) {
  EXPECT_EQ(report({"none.json"}).exit_code, 3);
  EXPECT_FALSE(there_is_a_page());
}

TEST_F(ReportTest, OneBadFileOfTwoLeavesThePageThatWas) {
  report({write("r.json", kResult)});
  const std::string before = page();
  write("bad.json", "{");
  EXPECT_EQ(report({"r.json", "bad.json"}).exit_code, 3);
  EXPECT_EQ(page(), before);
}

TEST_F(ReportTest, AsksForTheOutput) {
  write("r.json", kResult);
  const ProgramRun run = run_halfulp({"report", "r.json"}, {.folder = folder_.path()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("-o FILE.html"), std::string::npos);
}

}  // namespace
}  // namespace halfulp
