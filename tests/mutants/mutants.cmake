# Faults, one a row, that the unit tests must notice. Included to list them and to run one.

# mutant(NAME FILE TEST FILTER TEXT REPLACEMENT): TEXT occurs once in FILE; with REPLACEMENT in its place, the tests of
# tests/formats/TEST that match FILTER must fail.

mutant(ties_away_for_ties_even formats/rounding.h codec_test.cpp "*/EveryFormatAndMode.*/e4m3_nearest_even"
  [=[t.fraction > kHalf || (t.fraction == kHalf && (t.sticky || t.odd))]=]
  [=[t.fraction >= kHalf]=])
mutant(fraction_shifted_one_less formats/codec.h codec_test.cpp "*/EveryFormatAndMode.*/e4m3_nearest_even"
  [=[tail.fraction = uint32_t(below << (32 - shift));]=]
  [=[tail.fraction = uint32_t(below << (31 - shift));]=])
mutant(fraction_cut_at_31_bits formats/codec.h stochastic_test.cpp "Stochastic.ThirtyTwoBits*"
  [=[tail.fraction = cut < 64 ? uint32_t(below >> cut) : 0;]=]
  [=[tail.fraction = cut < 64 ? uint32_t(below >> cut) & ~uint32_t{1} : 0;]=])
mutant(lost_sticky_bit formats/codec.h codec_test.cpp "*/EveryFormatAndMode.*/e4m3_nearest_even"
  [=[tail.sticky = (below & low_mask(cut < 64 ? cut : 64)) != 0;]=]
  [=[tail.sticky = false;]=])
mutant(saturate_for_to_special formats/codec.h specials_test.cpp "OverflowRule.ToSpecial*"
  [=[if (overflow == Overflow::saturate ||]=]
  [=[if (true ||]=])
mutant(special_for_every_direction formats/codec.h specials_test.cpp "OverflowRule.ToSpecialFollows*"
  [=[return overflows(policy.rounding, u.negative) ? overflow_code]=]
  [=[return true ? overflow_code]=])
mutant(overflow_decided_before_rounding formats/codec.h specials_test.cpp "OverflowRule.IsDecidedAfterRounding"
  [=[if (magnitude <= f.max_code()) return]=]
  [=[if (round_magnitude(f, Rounding::up, {u.significand, u.exponent, false, u.kind}, random) <= f.max_code()) return]=])
mutant(dropped_sign_of_zero formats/codec.h specials_test.cpp "Zero.*"
  [=[const bool drop = f.specials == Specials::negative_zero && magnitude == 0;]=]
  [=[const bool drop = magnitude == 0;]=])
mutant(nan_keeps_its_sign formats/codec.h specials_test.cpp "NanInput.*"
  [=[case NanInput::all_ones: return canonical_nan(f);]=]
  [=[case NanInput::all_ones: return ieee_nan(f, f.hidden() - 1, u.negative);]=])
mutant(e8m0_floor_for_up formats/rounding.h codec_test.cpp "*/EveryFormatAndMode.*/e8m0_up"
  [=[case Rounding::up: return t.inexact() && !t.negative;]=]
  [=[case Rounding::up: return false;]=])
mutant(carry_masked formats/codec.h stochastic_test.cpp "Stochastic.TheCarry*"
  [=[kept += rounds_away(mode, tail, random);]=]
  [=[kept |= rounds_away(mode, tail, random);]=])
mutant(random_word_not_masked formats/rounding.h stochastic_test.cpp "Stochastic.ReadsTheLowBits*"
  [=[(random.word & low_mask(random.count))]=]
  [=[random.word]=])
mutant(double_rounded_through_float formats/codec.h codec_test.cpp "*/EveryFormatAndMode.*Boundaries/e4m3_nearest_even"
  [=[return detail::unpack_ieee<11, 52>(bit_cast<uint64_t>(x));]=]
  [=[return detail::unpack_ieee<8, 23>(bit_cast<uint32_t>(float(x)));]=])
mutant(integer_narrowed_to_32_bits formats/codec.h codec_test.cpp "*/EveryFormatAndMode.*Integers/bf16_nearest_even"
  [=[return {magnitude, 0, negative, Unpacked::Kind::finite};]=]
  [=[return {uint32_t(magnitude), 0, negative, Unpacked::Kind::finite};]=])
mutant(largest_code_is_the_nan formats/format.h decode_test.cpp "Decode.E4m3*"
  [=[case Specials::nan_only: return magnitude_mask() - 1;]=]
  [=[case Specials::nan_only: return magnitude_mask();]=])
mutant(subnormal_decoded_as_normal formats/codec.h decode_test.cpp "Decode.E2m1*"
  [=[(subnormal ? 0 : f.hidden())]=]
  [=[f.hidden()]=])

# recipe_mutant(NAME FILE TEST FILTER TEXT REPLACEMENT): the same with tests/emulation/TEST.

recipe_mutant(te_scale_in_another_order emulation/blocks/recipes.h order_of_operations_test.cpp "*ScaleOrder*"
  [=[Formula unrounded = "min(a * (S_enc * (1 / 6)), FLT_MAX)";]=]
  [=[Formula unrounded = "min(a / 6 * S_enc, FLT_MAX)";]=])
recipe_mutant(reciprocal_for_division emulation/blocks/recipes.h order_of_operations_test.cpp "*ElementOrder*"
  [=[minimum(maximum(a / (6 * S_dec), 0x1p-9), 448)",
                   .factor = "s * S_dec", .scaled = "x / m + 0"]=]
  [=[minimum(maximum(a / (6 * S_dec), 0x1p-9), 448)",
                   .factor = "1 / (s * S_dec)", .scaled = "x * m + 0"]=])
recipe_mutant(tensor_scale_of_inf_is_zero emulation/blocks/recipes.h recipe_cases_test.cpp "*T095"
  [=[Formula encode = "A == 0 ? 1 : 2688 / A == 0 ? 1 : min(2688 / A, FLT_MAX)";]=]
  [=[Formula encode = "A == 0 ? 1 : min(2688 / A, FLT_MAX)";]=])
recipe_mutant(te_mx_scale_to_nearest emulation/blocks/recipes.h recipe_cases_test.cpp "*Mxfp8E4m3Scale*"
  [=[.unrounded = "a * (1 / 448)", .scale_policy = detail::kUp,]=]
  [=[.unrounded = "a * (1 / 448)", .scale_policy = detail::kSaturate,]=])
recipe_mutant(dropped_sign_of_zero_elements emulation/blocks/block.h quantize_test.cpp "*SpecialBlocks*/nvfp4_te"
  [=[return evaluate(r.scaled, values);]=]
  [=[return evaluate(r.scaled, values) + 0;]=])
recipe_mutant(nan_ignored_in_every_amax emulation/blocks/block.h quantize_test.cpp "*SpecialBlocks*/mxfp8_ocp"
  [=[if (nan == AmaxNan::propagates && (m != m || amax != amax))]=]
  [=[if (false)]=])
recipe_mutant(tie_of_two_scales_taken emulation/blocks/quantize.cpp quantize_test.cpp "*/nvfp4_te_4over6_mse"
  [=[if (other[block] < loss[block]) continue;]=]
  [=[if (other[block] <= loss[block]) continue;]=])
recipe_mutant(other_order_of_losses emulation/blocks/block_sums.h block_sums_test.cpp "TorchSum.*"
  [=[sums_[count_ / kLanes % kAccumulators][count_ % kLanes] :]=]
  [=[sums_[0][count_ % kLanes] :]=])
recipe_mutant(random_bits_of_another_block emulation/blocks/quantize.cpp quantize_test.cpp "*/nvfp4_te"
  [=[here.first_block += first / block_cols(recipe, shape);]=]
  [=[]=])
recipe_mutant(random_bits_of_another_element emulation/blocks/quantize.cpp quantize_test.cpp "*/mxfp4_tseng"
  [=[here.first_element += first;]=]
  [=[]=])
recipe_mutant(random_words_in_another_order emulation/blocks/quantize.cpp recipe_cases_test.cpp "Spec.T101*"
  [=[random_block(random_.seed, block, random_.stream + word / 4)[word % 4];]=]
  [=[random_block(random_.seed, block, random_.stream + word / 4)[3 - word % 4];]=])
recipe_mutant(minus_binds_as_a_product emulation/blocks/formula.h formula_test.cpp "Texts/*"
  [=[{"-", Op::subtract, 2},]=]
  [=[{"-", Op::subtract, 3},]=])
recipe_mutant(logarithm_divided_in_fp32 emulation/blocks/formula.h formula_test.cpp "*Log2*"
  [=[return float(portable_log(double(x)) / kLn2);]=]
  [=[return float(portable_log(double(x))) / float(kLn2);]=])
recipe_mutant(half_of_a_mantissa_bit_more emulation/blocks/formula.h formula_test.cpp "*UnaryFunction*"
  [=[uint32_t{1} << (22 - int(q))]=]
  [=[uint32_t{1} << (21 - int(q))]=])
recipe_mutant(both_operands_taken_for_one emulation/blocks/formula.h quantize_test.cpp "*ComposedRecipe*"
  [=[return depth == 1 && !other_operand().uses(symbol);]=]
  [=[return depth == 1;]=])
