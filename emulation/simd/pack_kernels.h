// Codes in lanes to codes in memory. A part of encode_kernels.h, which includes it
// after vectors.h, once for each instruction set: no include guard.

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

// 32-bit lanes of the four vectors in the order of memory, given the order in which lanes of a 128-bit block were
// joined: position 4 * vector + block was lane `vector` of block `block`.
HWY_INLINE VU blocks_to_vectors(VU joined) {
  if constexpr (kLanes == 4) {
    return joined;
  } else {
    alignas(64) int32_t from[kLanes];
    constexpr std::size_t kBlocks = kLanes / 4;
    for (std::size_t i = 0; i < kLanes; ++i) from[i] = int32_t(i % kBlocks * 4 + i / kBlocks);
    return hn::TableLookupLanes(joined, hn::SetTableIndices(kWords, from));
  }
}

// Byte 4 * v + i of a block is byte v of its lane i.
HWY_INLINE VU bytes_by_vector(VU lanes) {
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto order = hn::LoadDup128(kBytes, kOrder);
  return hn::BitCast(kWords, hn::TableLookupBytes(hn::BitCast(kBytes, lanes), order));
}

// The codes of four vectors as bytes, in order. At bit 0 they are alone in their lanes; at bit 16 they fill a byte with
// others' bits around it.
template <int code_shift>
HWY_INLINE VU packed_bytes_of(const VU (&codes)[4]) {
  if constexpr (code_shift == 0) {
    const VU ab = hn::Or(codes[0], hn::ShiftLeft<8>(codes[1]));
    const VU cd = hn::Or(hn::ShiftLeft<16>(codes[2]), hn::ShiftLeft<24>(codes[3]));
    return blocks_to_vectors(bytes_by_vector(hn::Or(ab, cd)));
  } else {
    static_assert(code_shift == 16);
    const VU ab = select_bits(words(0x0000'00ff), hn::ShiftRight<16>(codes[0]), hn::ShiftRight<8>(codes[1]));
    const VU cd = select_bits(words(0x00ff'0000), codes[2], hn::ShiftLeft<8>(codes[3]));
    return blocks_to_vectors(bytes_by_vector(select_bits(words(0x0000'ffff), ab, cd)));
  }
}

enum class Width { nibbles, bytes, halves, any };  // any: asked at run time

HWY_INLINE void store_halves(const VU (&codes)[4], uint8_t* out) {
  const hn::Rebind<uint16_t, Words> half;
  auto* to = reinterpret_cast<uint16_t*>(out);
  hn::StoreU(hn::TruncateTo(half, codes[0]), half, to);
  hn::StoreU(hn::TruncateTo(half, codes[1]), half, to + kLanes);
  hn::StoreU(hn::TruncateTo(half, codes[2]), half, to + 2 * kLanes);
  hn::StoreU(hn::TruncateTo(half, codes[3]), half, to + 3 * kLanes);
}

HWY_INLINE void store_nibbles(VU bytes, uint8_t* out) {
  const auto pairs = hn::BitCast(kHalves, bytes);
  const auto nibbles = hn::And(hn::Or(pairs, hn::ShiftRight<4>(pairs)), hn::Set(kHalves, uint16_t{0xff}));
  const hn::Rebind<uint8_t, Halves> narrow;
  hn::StoreU(hn::TruncateTo(narrow, nibbles), narrow, out);
}

template <Width width, int code_shift>
HWY_INLINE void store_group(const VU (&codes)[4], int bits, VU flip, uint8_t* out) {
  if (width == Width::halves || (width == Width::any && bits == 16)) {
    store_halves(codes, out);
  } else if (width == Width::nibbles || (width == Width::any && bits == 4)) {
    store_nibbles(hn::Xor(packed_bytes_of<code_shift>(codes), flip), out);
  } else {
    hn::StoreU(hn::BitCast(kBytes, hn::Xor(packed_bytes_of<code_shift>(codes), flip)), kBytes, out);
  }
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
