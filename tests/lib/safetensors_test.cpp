#include "lib/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

// A file by the format's definition: the header's length in 8 little-endian bytes, the header, the data.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file += char(header.size() >> shift & 0xff);
  return file + header + data;
}

// One tensor `t` of that dtype, shape and offsets, over `size` data bytes.
std::string file_of_entry(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t size) {
  const std::string entry = R"("dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets;
  return file_of(R"({"t":{)" + entry + "}}", std::string(size, 'x'));
}

SafetensorsHeader parse(const std::string& file) { return parse_safetensors_header(bytes_of(file), "m"); }

// What the parser says of `file`, after checking that it is an input error of that rule.
std::string refused(const std::string& file, const std::string& rule) {
  const CaughtError error = error_of([&] { parse(file); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_TRUE(error.text.ends_with("(" + rule + ")")) << error.text;
  return error.text.substr(0, error.text.find(" (" + rule));
}

TEST(SafetensorsReader, HeaderTooSmall) {
  EXPECT_EQ(refused("1234567", "HeaderTooSmall"),
            "m: byte 0: the file has 7 bytes; a safetensors file begins with 8 bytes of header length");
}

TEST(SafetensorsReader, HeaderTooLarge) {
  EXPECT_EQ(refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), "HeaderTooLarge"),
            "m: byte 0: the header length is 100000001; at most 100000000 is allowed");
}

TEST(SafetensorsReader, HeaderLengthOfAllOnesIsTooLarge) { refused(std::string(8, '\xff') + "{}", "HeaderTooLarge"); }

TEST(SafetensorsReader, LargestHeaderLengthIsNotTooLarge) {
  refused(std::string("\x00\xe1\xf5\x05\0\0\0\0", 8), "InvalidHeaderLength");
}

TEST(SafetensorsReader, InvalidHeaderLength) {
  EXPECT_EQ(refused(file_of("{}").substr(0, 9), "InvalidHeaderLength"),
            "m: byte 0: the header length is 2, but only 1 bytes follow; is the file cut off?");
}

TEST(SafetensorsReader, InvalidHeader) {
  EXPECT_EQ(refused(file_of("{\"\xff\":1}"), "InvalidHeader"), "m: byte 10: the header is not UTF-8");
}

TEST(SafetensorsReader, InvalidHeaderDeserialization) {
  const std::string text = refused(file_of("{]"), "InvalidHeaderDeserialization");
  EXPECT_TRUE(text.starts_with("m: byte 9: the header is not JSON: ")) << text;
}

TEST(SafetensorsReader, InvalidOffsetOfAHole) {
  EXPECT_EQ(refused(file_of_entry("U8", "[4]", "[1,5]", 5), "InvalidOffset"),
            "m: tensor 't': byte 9: data_offsets [1, 5] should begin at 0, where the tensor before it ends");
}

TEST(SafetensorsReader, InvalidOffsetOfAnOverlap) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  const std::string text = refused(file_of(header, "123456"), "InvalidOffset");
  EXPECT_TRUE(text.starts_with("m: tensor 'b': byte 61: data_offsets [2, 6] should begin at 4")) << text;
}

TEST(SafetensorsReader, InvalidOffsetOfAnEndBeforeTheBegin) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[0],"data_offsets":[4,3]}})";
  const std::string text = refused(file_of(header, "1234"), "InvalidOffset");
  EXPECT_TRUE(text.starts_with("m: tensor 'b': byte 61: data_offsets [4, 3] end before they begin")) << text;
}

TEST(SafetensorsReader, ValidationOverflowOfTheElements) {
  refused(file_of_entry("U8", "[4294967296,4294967296]", "[0,4]", 4), "ValidationOverflow");
}

TEST(SafetensorsReader, ValidationOverflowOfTheBits) {
  refused(file_of_entry("F64", "[288230376151711744]", "[0,4]", 4), "ValidationOverflow");  // 2^58 * 64 bits
}

TEST(SafetensorsReader, MisalignedSlice) { refused(file_of_entry("F4", "[3]", "[0,1]", 1), "MisalignedSlice"); }

// 14 elements fill 7 bytes, but no row can be read by itself.
TEST(SafetensorsReader, MisalignedSliceOfEachRow) {
  EXPECT_EQ(refused(file_of_entry("F4", "[2,7]", "[0,7]", 7), "MisalignedSlice"),
            "m: tensor 't': byte 9: the rows of F4 (2, 7) do not fill whole bytes");
}

TEST(SafetensorsReader, TensorInvalidInfo) {
  EXPECT_EQ(refused(file_of_entry("F8_E4M3", "[128,128]", "[0,128]", 128), "TensorInvalidInfo"),
            "m: tensor 't': byte 9: data_offsets [0, 128] give 128 bytes, F8_E4M3 (128, 128) needs 16384");
}

TEST(SafetensorsReader, MetadataIncompleteBufferOfExtraBytes) {
  EXPECT_EQ(refused(file_of_entry("U8", "[4]", "[0,4]", 5), "MetadataIncompleteBuffer"),
            "m: byte 61: the tensors take 4 bytes, but 5 follow the header");
}

TEST(SafetensorsReader, MetadataIncompleteBufferOfMissingBytes) {
  refused(file_of_entry("U8", "[4]", "[0,4]", 3), "MetadataIncompleteBuffer");
}

// Of two faults the earlier rule is the one named.
TEST(SafetensorsReader, RulesHaveTheReferenceOrder) {
  refused(file_of("{\"\xff\":]"), "InvalidHeader");
  refused(file_of_entry("F4", "[3]", "[1,9]", 1), "InvalidOffset");
  refused(file_of_entry("F4", "[3]", "[0,9]", 1), "MisalignedSlice");
  refused(file_of_entry("U8", "[3]", "[0,9]", 1), "TensorInvalidInfo");
}

class MalformedHeader : public testing::TestWithParam<const char*> {};

TEST_P(MalformedHeader, InvalidHeaderDeserialization) { refused(file_of(GetParam()), "InvalidHeaderDeserialization"); }

INSTANTIATE_TEST_SUITE_P(Safetensors, MalformedHeader,
                         testing::Values("", " ", "[]", "1", "null", "{", "{}x", "{} {}", "{,}", "{'a':1}", "{/**/}",
                                         "\xef\xbb\xbf{}", R"({"t":1})", R"({"t":null})", R"({"t":[]})", R"({"t":{}})",
                                         R"({"t":["U8",[0],[0,0]]})", R"({"t":{"dtype":"U8","shape":[0]}})",
                                         R"({"t":{"dtype":"U8","data_offsets":[0,0]}})",
                                         R"({"t":{"shape":[0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"u8","shape":[0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":0,"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[0.0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[0e0],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":["0"],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[[0]],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0]}})",
                                         R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})",
                                         R"({"t":{"dtype":"U8","shape":[0],"data_offsets":{"0":0}}})",
                                         R"({"__metadata__":[]})", R"({"__metadata__":null})",
                                         R"({"__metadata__":{"a":1}})", R"({"__metadata__":{"a":{"b":"c"}}})",
                                         R"({"a\ud800":1})"));

TEST(SafetensorsReader, DuplicateTensorIsRefused) {
  const std::string entry = R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  const std::string text = refused(file_of("{" + entry + "," + entry + "}"), "InvalidHeaderDeserialization");
  EXPECT_EQ(text, "m: byte 63: the key 't' stands twice in one object");
}

TEST(SafetensorsReader, DuplicateFieldIsRefused) {
  refused(file_of(R"({"t":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
          "InvalidHeaderDeserialization");
}

TEST(SafetensorsReader, DuplicateMetadataIsRefused) {
  refused(file_of(R"({"__metadata__":{"a":"1","a":"1"}})"), "InvalidHeaderDeserialization");
  refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "InvalidHeaderDeserialization");
}

// Spelled differently, the same key.
TEST(SafetensorsReader, DuplicateBehindAnEscapeIsRefused) {
  refused(file_of(R"({"__metadata__":{"a":"1","\u0061":"1"}})"), "InvalidHeaderDeserialization");
}

TEST(SafetensorsReader, ZeroByteDoesNotEndTheHeader) {
  const std::string text = refused(file_of(std::string("{}\0 }", 5)), "InvalidHeaderDeserialization");
  EXPECT_EQ(text, "m: byte 10: the header has a zero byte");
}

TEST(SafetensorsReader, DeepNestingIsRefused) {
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string text = refused(file_of(R"({"t":{"x":)" + nested + "}}"), "InvalidHeaderDeserialization");
  EXPECT_EQ(text, "m: tensor 't': byte 144: the header is nested deeper than 128");
}

TEST(SafetensorsReader, WrongTypeNamesTensorFieldAndByte) {
  const std::string text = refused(file_of(R"({"t":{"dtype":"U8","shape":[true]}})"), "InvalidHeaderDeserialization");
  EXPECT_EQ(text, "m: tensor 't': byte 39: 'shape': expected an integer from 0 to 2^64-1, got a boolean");
}

// The byte is the key's opening quote, whatever stands in the key.
TEST(SafetensorsReader, ByteOfAKeyIsItsBegin) {
  const std::string entry = R"("a\"b\\":{"dtype":"U8","shape":[1],"data_offsets":[1,2]})";
  const std::string text = refused(file_of("{ " + entry + "}", "x"), "InvalidOffset");
  EXPECT_TRUE(text.starts_with("m: tensor 'a\"b\\': byte 10: ")) << text;
}

TEST(SafetensorsReader, EmptyHeaderIsAccepted) { EXPECT_TRUE(parse(file_of("{}")).tensors.empty()); }

TEST(SafetensorsReader, WhitespaceAroundTheHeaderIsAccepted) {
  EXPECT_EQ(parse(file_of(" \t\r\n{} \n")).data_begin, 16u);
}

TEST(SafetensorsReader, UnknownKeysOfAnEntryAreIgnored) {
  const std::string header =
      R"({"t":{"x":{"dtype":[1,-1,1.5,null,true,"a",{}]},"dtype":"U8","shape":[1],"y":3,"data_offsets":[0,1]}})";
  const SafetensorsHeader parsed = parse(file_of(header, "x"));
  ASSERT_EQ(parsed.tensors.size(), 1u);
  EXPECT_EQ(parsed.tensors[0].shape, std::vector<uint64_t>{1});
}

TEST(SafetensorsReader, RankZeroIsOneElement) {
  const SafetensorsHeader parsed = parse(file_of_entry("F32", "[]", "[0,4]", 4));
  EXPECT_TRUE(parsed.tensors.at(0).shape.empty());
}

TEST(SafetensorsReader, ZeroSizeTensorIsAccepted) {
  const SafetensorsHeader parsed = parse(file_of_entry("F32", "[3,0]", "[0,0]", 0));
  EXPECT_EQ(parsed.tensors.at(0).begin, parsed.tensors.at(0).end);
}

TEST(SafetensorsReader, PackedShapeCountsElements) {
  const SafetensorsHeader parsed = parse(file_of_entry("F4", "[2,8]", "[0,8]", 8));
  EXPECT_EQ(parsed.tensors.at(0).shape, (std::vector<uint64_t>{2, 8}));
}

TEST(SafetensorsReader, TensorsComeInTheOrderOfTheirBytes) {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
                             R"("a":{"dtype":"U16","shape":[1],"data_offsets":[0,2]}})";
  const SafetensorsHeader parsed = parse(file_of(header, "aab"));
  ASSERT_EQ(parsed.tensors.size(), 2u);
  EXPECT_EQ(parsed.tensors[0].name, "a");
  EXPECT_EQ(parsed.tensors[1].begin, 8 + header.size() + 2);
}

TEST(SafetensorsReader, ReadsWhatTheReferenceWriterWrote) {
  const std::string file = read_file(golden_file("names.safetensors"));
  const SafetensorsHeader parsed = parse(file);
  EXPECT_EQ(parsed.metadata, (SafetensorsMetadata{{"a \"key\"", "first\né"}}));
  ASSERT_EQ(parsed.tensors.size(), 5u);
  EXPECT_EQ(parsed.tensors[3].name, "a");
  EXPECT_EQ(file.substr(parsed.tensors[3].begin, 3), "\5\6\7");
  EXPECT_EQ(parsed.tensors[4].name, "quote \" backslash \\ tab \t unit \x1f slash / del \x7f é 漢 😀");
}

TEST(SafetensorsReader, EveryCutOfAFileIsRefused) {
  const std::string file = read_file(golden_file("names.safetensors"));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse(file.substr(0, size)), InputError) << size;
  }
}

std::vector<TensorData> tensors_of(const std::string& file, const SafetensorsHeader& header) {
  std::vector<TensorData> tensors;
  for (const SafetensorsEntry& entry : header.tensors) {
    tensors.push_back({.spec = {.name = entry.name, .dtype = entry.dtype, .shape = entry.shape},
                       .bytes = bytes_of(file).subspan(entry.begin, entry.end - entry.begin)});
  }
  return tensors;
}

class ReferenceFile : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceFile, IsWrittenAgainByteForByte) {
  const TemporaryDirectory directory;
  const std::string file = read_file(golden_file(GetParam()));
  const SafetensorsHeader header = parse(file);
  std::vector<TensorData> tensors = tensors_of(file, header);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(directory / "x", tensors, header.metadata);
  EXPECT_EQ(read_file(directory / "x"), file);
}

INSTANTIATE_TEST_SUITE_P(Safetensors, ReferenceFile, testing::Values("every_dtype.safetensors", "names.safetensors"));

const TensorSpec kBytes3 = {.name = "bytes", .dtype = Dtype::u8, .shape = {3}};
const TensorSpec kFloats2 = {.name = "floats", .dtype = Dtype::f32, .shape = {2}};

TEST(SafetensorsWriter, PiecesInAnyOrderMakeTheSameFile) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "whole",
                    std::vector<TensorData>{{kBytes3, bytes_of("abc")}, {kFloats2, bytes_of("ABCDEFGH")}}, {});
  SafetensorsWriter writer(directory / "pieces", std::vector{kBytes3, kFloats2}, {});
  writer.write(0, 1, bytes_of("bc"));
  std::thread other([&] { writer.write(1, 4, bytes_of("EFGH")); });
  writer.write(0, 0, bytes_of("a"));
  writer.write(1, 0, bytes_of("ABCD"));
  other.join();
  writer.commit();
  EXPECT_EQ(read_file(directory / "pieces"), read_file(directory / "whole"));
}

TEST(SafetensorsWriter, RefusesToCommitWithBytesMissing) {
  const TemporaryDirectory directory;
  {
    SafetensorsWriter writer(directory / "x", std::vector{kBytes3}, {});
    writer.write(0, 0, bytes_of("ab"));
    const CaughtError error = error_of([&] { writer.commit(); });
    EXPECT_EQ(error.code, ExitCode::internal);
    EXPECT_NE(error.text.find("tensor 'bytes': 2 of 3 bytes were written"), std::string::npos) << error.text;
  }
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(SafetensorsWriter, RefusesBytesOutsideATensor) {
  const TemporaryDirectory directory;
  SafetensorsWriter writer(directory / "x", std::vector{kBytes3, kFloats2}, {});
  EXPECT_EQ(error_of([&] { writer.write(0, 2, bytes_of("ab")); }).code, ExitCode::internal);
  EXPECT_EQ(error_of([&] { writer.write(0, ~uint64_t{0}, bytes_of("ab")); }).code, ExitCode::internal);
}

TEST(SafetensorsWriter, EmptyTensorsNeedNoWrite) {
  const TemporaryDirectory directory;
  SafetensorsWriter(directory / "x", std::vector<TensorSpec>{{"e", Dtype::f32, {0}}}, {}).commit();
  EXPECT_EQ(parse(read_file(directory / "x")).tensors.at(0).shape, std::vector<uint64_t>{0});
}

TEST(SafetensorsWriter, EveryTensorIsAlignedToItsElements) {
  std::vector<TensorSpec> specs;
  for (const DtypeRow& r : kDtypes) specs.push_back({.name = std::string(r.name), .dtype = r.dtype, .shape = {4}});
  const SafetensorsLayout layout = lay_out_safetensors(specs, {{"k", "v"}});
  for (const DtypeRow& r : kDtypes) {
    if (r.bits < 8) continue;
    EXPECT_EQ(layout.begins[size_t(r.dtype)] % (uint64_t(r.bits) / 8), 0u) << r.name;
  }
}

CaughtError layout_error(const std::vector<TensorSpec>& specs) {
  return error_of([&] { lay_out_safetensors(specs, {}); });
}

TEST(SafetensorsWriter, NameTwiceIsRefused) {
  EXPECT_NE(layout_error({kBytes3, kBytes3}).text.find("two of this name"), std::string::npos);
}

TEST(SafetensorsWriter, ReservedNameIsRefused) {
  EXPECT_NE(layout_error({{"__metadata__", Dtype::u8, {1}}}).text.find("reserves"), std::string::npos);
}

TEST(SafetensorsWriter, NameThatIsNotUtf8IsRefused) {
  EXPECT_NE(layout_error({{"\xff", Dtype::u8, {1}}}).text.find("not UTF-8"), std::string::npos);
}

TEST(SafetensorsWriter, OddPackedRowIsRefused) {
  EXPECT_NE(layout_error({{"t", Dtype::f4, {2, 7}}}).text.find("rows of F4 (2, 7)"), std::string::npos);
}

TEST(SafetensorsWriter, SizeThatDoesNotFitIsRefused) {
  const uint64_t huge = uint64_t{1} << 60;
  EXPECT_EQ(layout_error({{"t", Dtype::f64, {huge}}}).code, ExitCode::bad_input);
}

}  // namespace
}  // namespace halfulp
