#include "lib/npy.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>

#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

// Version 1, without padding.
std::string file_of(const std::string& dict, const std::string& data = "") {
  return "\x93NUMPY" + std::string("\x01\x00", 2) + char(dict.size() & 0xff) + char(dict.size() >> 8) + dict + data;
}

std::string dict_of(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}";
}

NpyHeader parse(const std::string& file, std::optional<Dtype> dtype = std::nullopt) {
  return parse_npy_header(bytes_of(file), "a.npy", dtype);
}

std::string refused(const std::string& file, std::optional<Dtype> dtype = std::nullopt) {
  const CaughtError error = error_of([&] { parse(file, dtype); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  return error.text;
}

template <class T>
std::vector<T> elements_of(const std::string& golden) {
  const std::string file = read_file(golden_file(golden));
  const std::vector<std::byte> bytes = npy_elements(parse(file), bytes_of(file));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> eighths(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(float(i) / 8);
  return values;
}

class SavedByNumpy : public testing::TestWithParam<const char*> {};

TEST_P(SavedByNumpy, GivesTheElementsInCOrder) { EXPECT_EQ(elements_of<float>(GetParam()), eighths(24)); }

INSTANTIATE_TEST_SUITE_P(Npy, SavedByNumpy,
                         testing::Values("f4_c.npy", "f4_fortran.npy", "f4_big_endian.npy", "f4_version_2.npy",
                                         "f4_version_3.npy"));

TEST(NpyReader, BigEndianComplexInFortranOrder) {
  std::vector<std::complex<float>> expected;
  for (float value : eighths(12)) expected.emplace_back(value, 1.0f);
  EXPECT_EQ(elements_of<std::complex<float>>("c8_big_endian_fortran.npy"), expected);
}

TEST(NpyReader, HeaderSaysWhatTheFileHolds) {
  const NpyHeader header = parse(read_file(golden_file("f4_fortran.npy")));
  EXPECT_EQ(header.dtype, Dtype::f32);
  EXPECT_EQ(header.shape, (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_EQ(header.axis_order, AxisOrder::fortran);
  EXPECT_EQ(header.byte_order, ByteOrder::little);
  EXPECT_EQ(header.data_begin, 128u);
}

TEST(NpyReader, RankZeroIsOneElement) { EXPECT_EQ(elements_of<double>("f8_scalar.npy"), std::vector<double>{1.5}); }

TEST(NpyReader, ZeroSizeArrayIsAccepted) {
  EXPECT_EQ(parse(read_file(golden_file("u1_empty.npy"))).shape, (std::vector<uint64_t>{0, 5}));
}

TEST(NpyReader, OnlyLittleEndianCOrderIsInPlace) {
  EXPECT_TRUE(npy_is_in_place(parse(read_file(golden_file("f4_c.npy")))));
  EXPECT_FALSE(npy_is_in_place(parse(read_file(golden_file("f4_fortran.npy")))));
  EXPECT_FALSE(npy_is_in_place(parse(read_file(golden_file("f4_big_endian.npy")))));
}

TEST(NpyReader, EveryNumpyTypeIsRecognised) {
  for (const DtypeRow& r : kDtypes) {
    if (r.npy_descr.empty()) continue;
    const std::string data(size_t(r.bits) / 8, 'x');
    EXPECT_EQ(parse(file_of(dict_of(std::string(r.npy_descr), "()"), data)).dtype, r.dtype) << r.name;
  }
}

TEST(NpyReader, NarrowFloatOfMlDtypesIsE5m2) {
  EXPECT_EQ(parse(read_file(golden_file("float8_e5m2.npy"))).dtype, Dtype::f8_e5m2);
}

TEST(NpyReader, RawBytesAskForTheType) {
  const std::string text = refused(read_file(golden_file("bfloat16.npy")));
  EXPECT_EQ(text,
            "a.npy: byte 20: elements are '<V2': raw bytes whose type numpy did not save; give it with --dtype, such "
            "as --dtype bf16");
}

TEST(NpyReader, GivenTypeFitsRawBytes) {
  EXPECT_EQ(parse(read_file(golden_file("bfloat16.npy")), Dtype::bf16).dtype, Dtype::bf16);
  EXPECT_EQ(parse(read_file(golden_file("float8_e4m3fn.npy")), Dtype::f8_e4m3).dtype, Dtype::f8_e4m3);
}

TEST(NpyReader, GivenTypeFitsIntegersOfItsSize) {
  EXPECT_EQ(parse(file_of(dict_of("<u2", "(1,)"), "ab"), Dtype::bf16).dtype, Dtype::bf16);
}

TEST(NpyReader, GivenTypeOfAnotherSizeIsRefused) {
  const std::string text = refused(read_file(golden_file("bfloat16.npy")), Dtype::f32);
  EXPECT_NE(text.find("elements are '<V2', which cannot be read as F32 of 32 bits"), std::string::npos) << text;
}

// A declared type is never reinterpreted, even where the sizes agree.
TEST(NpyReader, GivenTypeDoesNotOverruleADeclaredOne) { refused(file_of(dict_of("<f2", "(1,)"), "ab"), Dtype::bf16); }

TEST(NpyReader, GivenTypeThatIsTheDeclaredOneIsAccepted) {
  EXPECT_EQ(parse(file_of(dict_of("<f2", "(1,)"), "ab"), Dtype::f16).dtype, Dtype::f16);
}

// ml_dtypes saves one float4 per byte, safetensors packs two.
TEST(NpyReader, PackedTypeIsRefused) { refused(read_file(golden_file("float4_e2m1fn.npy")), Dtype::f4); }

TEST(NpyReader, PickleIsRefused) {
  EXPECT_NE(refused(read_file(golden_file("object.npy"))).find("pickle"), std::string::npos);
}

TEST(NpyReader, StructuredArrayIsRefused) {
  EXPECT_NE(refused(read_file(golden_file("structured.npy"))).find("structured"), std::string::npos);
}

TEST(NpyReader, EveryCutOfAFileIsRefused) {
  const std::string file = read_file(golden_file("f4_c.npy"));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_THROW(parse(file.substr(0, size)), InputError) << size;
}

TEST(NpyReader, CutOffHeaderNamesBothSizes) {
  const std::string text = refused(read_file(golden_file("f4_c.npy")).substr(0, 127));
  EXPECT_EQ(text, "a.npy: byte 8: the header needs 118 bytes, but the file has 127; is it cut off?");
}

TEST(NpyReader, ZeroByteDoesNotEndTheHeader) { refused(file_of(dict_of("|u1", "(0,)") + std::string("\0 x", 3))); }

TEST(NpyReader, CutOffDataNamesBothSizes) {
  const std::string text = refused(file_of(dict_of("<f4", "(2,)"), "1234567"));
  EXPECT_EQ(text, "a.npy: byte 65: F32 (2,) needs 8 data bytes, got 7; is the file cut off?");
}

TEST(NpyReader, ExtraBytesAreRefused) { refused(file_of(dict_of("<f4", "(2,)"), "123456789")); }

TEST(NpyReader, SizeThatDoesNotFitIsRefused) { refused(file_of(dict_of("|u1", "(4294967296, 4294967296)"))); }

TEST(NpyReader, UnknownVersionIsRefused) {
  std::string file = read_file(golden_file("f4_c.npy"));
  file[6] = 4;
  EXPECT_EQ(refused(file), "a.npy: byte 6: unknown .npy version 4.0; expected 1.0, 2.0 or 3.0");
}

TEST(NpyReader, LongHeaderIsRefused) {
  EXPECT_NE(refused(file_of(dict_of("|u1", "(0,)") + std::string(10'000, ' '))).find("at most 10000"),
            std::string::npos);
}

TEST(NpyReader, LargestHeaderIsAccepted) {
  const std::string dict = dict_of("|u1", "(0,)");
  EXPECT_EQ(parse(file_of(dict + std::string(10'000 - dict.size(), ' '))).data_begin, 10'010u);
}

class AcceptedDict : public testing::TestWithParam<const char*> {};

TEST_P(AcceptedDict, HoldsThreeBytes) {
  const NpyHeader header = parse(file_of(GetParam(), "abc"));
  EXPECT_EQ(header.dtype, Dtype::u8);
  EXPECT_EQ(element_count(header.shape), 3u);
}

INSTANTIATE_TEST_SUITE_P(Npy, AcceptedDict,
                         testing::Values("{'shape':(3,),'descr':'|u1','fortran_order':False}",
                                         "{'fortran_order': True, 'shape': (3, 1), 'descr': '|u1', }",
                                         " {\"descr\": \"<u1\",\n \"fortran_order\": False, 'shape': ( 1 , 3 , )\t} \n",
                                         "{'descr': '>u1', 'fortran_order': False, 'shape': (3, 1, 1, 1)}"));

class RefusedDict : public testing::TestWithParam<const char*> {};

TEST_P(RefusedDict, IsBadInput) { refused(file_of(GetParam(), "abc")); }

INSTANTIATE_TEST_SUITE_P(Npy, RefusedDict,
                         testing::Values("", " ", "{}", "[]", "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)} x",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': 3}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': [3]}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (-3,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (03,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3.0,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3L,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3,,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (1 3)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551616,)}",
                                         "{'descr': '|u1', 'fortran_order': 0, 'shape': (3,)}",
                                         "{'descr': '|u1', 'fortran_order': false, 'shape': (3,)}",
                                         "{'descr': '|u1', 'fortran_order': False}", "{'descr': '|u1', 'shape': (3,)}",
                                         "{'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), 'x': 1}",
                                         "{'descr': '|u1' 'fortran_order': False, 'shape': (3,)}",
                                         "{descr: '|u1', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': u1, 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '\\x7cu1', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': ('|u1', (3,)), 'fortran_order': False, 'shape': ()}",
                                         "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': 'u1', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '|u', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '|u1x', 'fortran_order': False, 'shape': (3,)}",
                                         "{'descr': '|S3', 'fortran_order': False, 'shape': ()}",
                                         "{'descr': '|f2', 'fortran_order': False, 'shape': ()}",
                                         "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (0,)}",
                                         "{'descr': '<f16', 'fortran_order': False, 'shape': (0,)}",
                                         "{'descr': '<V16', 'fortran_order': False, 'shape': (0,)}"));

class WrittenByNumpy : public testing::TestWithParam<const char*> {};

TEST_P(WrittenByNumpy, IsWrittenAgainByteForByte) {
  const TemporaryDirectory directory;
  const std::string file = read_file(golden_file(GetParam()));
  const NpyHeader header = parse(file);
  write_npy(directory / "x.npy", header.dtype, header.shape, bytes_of(file).subspan(header.data_begin));
  EXPECT_EQ(read_file(directory / "x.npy"), file);
}

INSTANTIATE_TEST_SUITE_P(Npy, WrittenByNumpy,
                         testing::Values("f4_c.npy", "f8_scalar.npy", "i2_vector.npy", "u1_empty.npy",
                                         "u1_full_line.npy", "b1.npy"));

TEST(NpyWriter, PiecesInAnyOrderMakeTheSameFile) {
  const TemporaryDirectory directory;
  const uint64_t shape[] = {2, 2};
  write_npy(directory / "whole.npy", Dtype::u16, shape, bytes_of("abcdefgh"));
  NpyWriter writer(directory / "pieces.npy", Dtype::u16, shape);
  writer.write_at(5, bytes_of("fgh"));
  writer.write_at(0, bytes_of("abcde"));
  writer.commit();
  EXPECT_EQ(read_file(directory / "pieces.npy"), read_file(directory / "whole.npy"));
}

TEST(NpyWriter, RefusesToCommitWithBytesMissing) {
  const TemporaryDirectory directory;
  const uint64_t shape[] = {3};
  {
    NpyWriter writer(directory / "x.npy", Dtype::u8, shape);
    writer.write_at(0, bytes_of("ab"));
    EXPECT_EQ(error_of([&] { writer.commit(); }).code, ExitCode::internal);
  }
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(NpyWriter, RefusesBytesOutsideTheArray) {
  const TemporaryDirectory directory;
  const uint64_t shape[] = {3};
  NpyWriter writer(directory / "x.npy", Dtype::u8, shape);
  EXPECT_EQ(error_of([&] { writer.write_at(2, bytes_of("ab")); }).code, ExitCode::internal);
}

TEST(NpyWriter, TypeThatNumpyLacksIsRefused) {
  const TemporaryDirectory directory;
  const uint64_t shape[] = {3};
  const CaughtError error = error_of([&] { NpyWriter(directory / "x.npy", Dtype::bf16, shape); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_NE(error.text.find("numpy has no type for BF16"), std::string::npos) << error.text;
}

}  // namespace
}  // namespace halfulp
