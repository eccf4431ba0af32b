#include "tools/explain_value.h"

#include <cmath>
#include <limits>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "tools/number_line.h"
#include "tools/number_text.h"
#include "tools/policy_text.h"

namespace halfulp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr Policy policy_of(Rounding rounding, Overflow overflow) {
  return {.rounding = rounding, .overflow = overflow};
}

// The value of a magnitude code as if the exponent range had no upper end.
double magnitude_value(const Format& f, uint32_t magnitude) {
  const int field = int(magnitude >> f.mantissa_bits);
  const bool subnormal = field == 0 && f.subnormals == Subnormals::yes;
  const uint32_t significand = (magnitude & (f.hidden() - 1)) | (subnormal ? 0 : f.hidden());
  return std::ldexp(double(significand), (subnormal ? 1 : field) - f.bias - f.mantissa_bits);
}

// Halfway from a magnitude code to the next.
double midpoint_above(const Format& f, uint32_t magnitude) {
  return (magnitude_value(f, magnitude) + magnitude_value(f, magnitude + 1)) / 2;
}

// Where |x| lies among the values of the format.
struct Place {
  enum class Kind {
    exact,           // on the value of `lower`
    between,         // above it and below the next, which may be the first beyond the range
    beyond,          // not below the first value beyond the range; `lower` is the largest
    below_smallest,  // of a format without zero; `lower` is the smallest
  };
  Kind kind;
  uint32_t lower;
  double lower_value = 0;
  double upper_value = 0;
  double ulp = 0;
  double fraction = 0;  // of an ulp, from the value of `lower`
};

Place place_of(const Format& f, const Unpacked& u, double magnitude) {
  const uint32_t truncated = round_magnitude(f, Rounding::toward_zero, u, {});
  Place place{.kind = Place::Kind::between, .lower = std::min(truncated, f.max_code())};
  place.lower_value = magnitude_value(f, place.lower);
  place.upper_value = magnitude_value(f, place.lower + 1);
  place.ulp = place.upper_value - place.lower_value;
  place.fraction = (magnitude - place.lower_value) / place.ulp;
  if (place.lower_value == magnitude) place.kind = Place::Kind::exact;
  if (place.lower_value > magnitude) place.kind = Place::Kind::below_smallest;
  if (truncated > f.max_code()) place.kind = Place::Kind::beyond;
  return place;
}

// A finite number before a format: what every function below needs to know.
struct Question {
  const Format& f;
  Unpacked u;  // less its sign where the format has none
  double x;    // likewise
  std::string x_text;
  Place place;
  int random_bits;

  bool negative() const { return u.negative; }
  double signed_value(double magnitude) const { return u.negative ? -magnitude : magnitude; }
  uint32_t encode_with(Policy policy, uint32_t word = 0) const {
    return encode_unpacked(f, policy, u, {.word = word, .count = random_bits});
  }
  uint32_t all_ones() const { return uint32_t(low_mask(random_bits)); }
  std::string lower_text() const { return decimal(signed_value(place.lower_value)); }
  std::string upper_text() const { return decimal(signed_value(place.upper_value)); }
  bool upper_exists() const { return place.lower < f.max_code(); }
};

// Random words that move the answer away from zero. A word that does is followed by words that do, so the first one is
// searched by halving.
uint64_t away_words(const Question& q) {
  const Policy policy = policy_of(Rounding::stochastic, Overflow::to_special);
  const uint32_t kept = q.encode_with(policy, 0);
  uint64_t low = 0, high = uint64_t{1} << q.random_bits;  // the first word that moves is in [low, high]
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (q.encode_with(policy, uint32_t(middle)) != kept) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return (uint64_t{1} << q.random_bits) - low;
}

bool random_bits_matter(const Question& q, Overflow overflow) {
  const Policy policy = policy_of(Rounding::stochastic, overflow);
  return q.encode_with(policy, 0) != q.encode_with(policy, q.all_ones());
}

std::string nearer_text(const Question& q) {
  if (q.place.fraction < 0.5) return "nearer to " + q.lower_text();
  return "nearer to " + q.upper_text() + (q.upper_exists() ? "" : ", which is out of range");
}

std::string tie_text(const Question& q, Rounding rounding) {
  if (rounding == Rounding::nearest_away) return "tie: away from zero";
  if (rounding == Rounding::nearest_zero) return "tie: toward zero";
  return q.f.mantissa_bits == 0 ? "tie: away from zero, for both significands are odd" : "tie: the even code";
}

std::string odd_text(const Question& q) {
  if (q.f.mantissa_bits == 0) return "inexact: toward zero, for both significands are odd";
  const bool escapes = !q.upper_exists() && q.place.lower % 2 == 0;
  return escapes ? "inexact: the odd code is out of range, the largest finite value" : "inexact: the odd code";
}

std::string stochastic_text(const Question& q, Overflow overflow) {
  if (!q.upper_exists() && !random_bits_matter(q, overflow))
    return "the largest finite value, whatever the random bits";
  const uint64_t words = uint64_t{1} << q.random_bits, away = away_words(q);
  return fmt::format("away from zero for {} of {} random words: P = {}", away, words,
                     decimal(double(away) / double(words)));
}

std::string between_text(const Question& q, Rounding rounding, Overflow overflow) {
  switch (rounding) {
    case Rounding::nearest_even:
    case Rounding::nearest_away:
    case Rounding::nearest_zero: return q.place.fraction == 0.5 ? tie_text(q, rounding) : nearer_text(q);
    case Rounding::toward_zero: return "drops what does not fit";
    case Rounding::up: return "toward +Inf";
    case Rounding::down: return "toward -Inf";
    case Rounding::to_odd: return odd_text(q);
    case Rounding::stochastic: return stochastic_text(q, overflow);
  }
  return "";
}

std::string why(const Question& q, Rounding rounding, Overflow overflow) {
  switch (q.place.kind) {
    case Place::Kind::exact: return "a value of the format";
    case Place::Kind::between: return between_text(q, rounding, overflow);
    case Place::Kind::below_smallest: return "below the smallest value: the smallest value";
    case Place::Kind::beyond:
      return overflows(rounding, q.negative()) ? "out of range" : "out of range: stops at the largest finite value";
  }
  return "";
}

// One code, or the two between which random bits decide.
Facts code_facts(const Format& f, uint32_t code, uint32_t other) {
  const auto value = [&](uint32_t c) { return Json(double(decode(f, c))); };
  if (code == other) {
    return {{"code", code, code_text(f, code)},
            {"fields", fields_text(f, code)},
            {"value", value(code), value_text(f, code)}};
  }
  const auto both = [](const std::string& a, const std::string& b) { return a + " or " + b; };
  return {{"code", {code, other}, both(code_text(f, code), code_text(f, other))},
          {"fields",
           {fields_text(f, code), fields_text(f, other)},
           f.bits() <= 8 ? both(fields_text(f, code), fields_text(f, other)) : ""},  // the neighbours have them
          {"value", {value(code), value(other)}, both(value_text(f, code), value_text(f, other))}};
}

Facts answer(const Question& q, const RoundingEntry& row, Overflow overflow) {
  const Policy policy = policy_of(row.rounding, overflow);
  Facts facts{{"rounding", row.name}, {"ptx", row.ptx}};
  const uint32_t code = q.encode_with(policy, 0);
  const uint32_t other = is_stochastic(row.rounding) ? q.encode_with(policy, q.all_ones()) : code;
  for (Fact& fact : code_facts(q.f, code, other)) facts.push_back(std::move(fact));
  facts.emplace_back("why", why(q, row.rounding, overflow));
  return facts;
}

std::vector<Facts> answers(const Question& q, Overflow overflow) {
  std::vector<Facts> rows;
  for (const RoundingEntry& row : kRoundings) rows.push_back(answer(q, row, overflow));
  return rows;
}

Facts neighbour(const Question& q, std::string_view which, Fact code, Fact fields, double value) {
  return {{"which", which},
          std::move(code),
          std::move(fields),
          {"value", q.signed_value(value)},
          {"distance_ulp", std::fabs(std::fabs(q.x) - value) / q.place.ulp}};
}

Facts neighbour_with_code(const Question& q, std::string_view which, uint32_t magnitude) {
  const uint32_t code = with_sign(q.f, magnitude, q.negative());
  return neighbour(q, which, {"code", code, code_text(q.f, code)}, {"fields", fields_text(q.f, code)},
                   magnitude_value(q.f, magnitude));
}

Facts neighbour_without_code(const Question& q, std::string_view which, double value) {
  return neighbour(q, which, {"code", nullptr, ""}, {"fields", nullptr, ""}, value);
}

std::vector<Facts> neighbours(const Question& q) {
  const Place& p = q.place;
  std::vector<Facts> rows;
  if (p.kind != Place::Kind::exact) {
    rows.push_back(neighbour_with_code(q, "toward zero", p.lower));
    rows.push_back(neighbour_without_code(q, "midpoint", midpoint_above(q.f, p.lower)));
  } else {
    if (p.lower > 0) rows.push_back(neighbour_with_code(q, "toward zero", p.lower - 1));
    rows.push_back(neighbour_with_code(q, "itself", p.lower));
  }
  rows.push_back(q.upper_exists() ? neighbour_with_code(q, "away from zero", p.lower + 1)
                                  : neighbour_without_code(q, "out of range", p.upper_value));
  return rows;
}

std::string code_label(const Question& q, uint32_t magnitude) {
  if (magnitude > q.f.max_code()) return "out of range";
  return code_text(q.f, with_sign(q.f, magnitude, q.negative()));
}

Tick tick(const Question& q, uint32_t magnitude) {
  const double value = q.signed_value(magnitude_value(q.f, magnitude));
  return {.value = value, .mark = '|', .above = "", .below = {decimal(value), code_label(q, magnitude)}};
}

// From the neighbour below to the one above, with the midpoints and x.
std::string picture(const Question& q) {
  const Place& p = q.place;
  if (p.kind == Place::Kind::beyond || p.kind == Place::Kind::below_smallest) return "";
  std::vector<Tick> ticks;
  const Tick x{.value = q.x, .mark = 'x', .above = "x = " + q.x_text, .below = {}};
  const uint32_t first = p.kind == Place::Kind::exact && p.lower > 0 ? p.lower - 1 : p.lower;
  for (uint32_t magnitude = first; magnitude <= p.lower + 1; ++magnitude) {
    ticks.push_back(tick(q, magnitude));
    if (magnitude <= p.lower) ticks.push_back({q.signed_value(midpoint_above(q.f, magnitude)), '+', "", {}});
  }
  ticks.push_back(x);
  std::ranges::stable_sort(ticks, {}, &Tick::value);
  return number_line(ticks);
}

struct Interval {
  double lower;
  double upper;
  bool lower_closed;
  bool upper_closed;
};

bool is_number(const Format& f, uint32_t code) { return !is_nan_code(f, code) && !is_inf_code(f, code); }

// The magnitudes that nearest-even sends to a code. Whether an end belongs to it is asked of the codec.
Interval magnitudes_of(const Question& q, uint32_t code, Overflow overflow) {
  const Policy policy = policy_of(Rounding::nearest_even, overflow);
  const auto becomes_code = [&](double x) { return encode(q.f, policy, q.signed_value(x)) == code; };
  const uint32_t max = q.f.max_code(), magnitude = code & q.f.magnitude_mask();
  const bool number = is_number(q.f, code);
  Interval interval{.lower = 0, .upper = kInf, .lower_closed = true, .upper_closed = true};
  if (!number) {
    interval.lower = midpoint_above(q.f, max);
    interval.lower_closed = becomes_code(interval.lower);
  } else if (magnitude > 0) {
    interval.lower = midpoint_above(q.f, magnitude - 1);
    interval.lower_closed = becomes_code(interval.lower);
  }
  if (number && (magnitude < max || !becomes_code(kInf))) {
    interval.upper = midpoint_above(q.f, magnitude);
    interval.upper_closed = becomes_code(interval.upper);
  }
  return interval;
}

// The reals: the magnitudes with the sign of x, or both signs where zero has one code.
Interval reals_of(const Question& q, uint32_t code, Overflow overflow) {
  const Interval m = magnitudes_of(q, code, overflow);
  const bool both_signs = m.lower == 0 && q.f.sign == Sign::one_bit && !q.f.has_negative_zero();
  if (both_signs) return {-m.upper, m.upper, m.upper_closed, m.upper_closed};
  return q.negative() ? Interval{-m.upper, -m.lower, m.upper_closed, m.lower_closed} : m;
}

std::string interval_text(const Interval& i) {
  return fmt::format("{}{}, {}{}", i.lower_closed ? '[' : '(', decimal(i.lower), decimal(i.upper),
                     i.upper_closed ? ']' : ')');
}

Facts interval_facts(const Question& q, uint32_t code, Overflow overflow) {
  const Interval i = reals_of(q, code, overflow);
  return {{"overflow", kOverflowNames[std::size_t(overflow)]},
          {"code", code, code_and_value(q.f, code)},
          {"interval", interval_text(i)},
          {"lower", i.lower},
          {"lower_closed", i.lower_closed, ""},
          {"upper", i.upper},
          {"upper_closed", i.upper_closed, ""}};
}

std::vector<Facts> intervals(const Question& q) {
  std::vector<Facts> rows;
  for (const Overflow overflow : {Overflow::saturate, Overflow::to_special}) {
    const uint32_t code = q.encode_with(policy_of(Rounding::nearest_even, overflow));
    rows.push_back(interval_facts(q, code, overflow));
  }
  return rows;
}

Facts policy_facts(const Format& f, std::string_view name, std::string_view meaning, uint32_t code) {
  Facts facts{{"policy", name}};
  for (Fact& fact : code_facts(f, code, code)) facts.push_back(std::move(fact));
  facts.emplace_back("meaning", meaning);
  return facts;
}

std::vector<Facts> nan_policies(const Format& f, const Unpacked& u) {
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < kNanInputNames.size(); ++i) {
    const uint32_t code = nan_code(f, NanInput(i), u) & f.code_mask();
    rows.push_back(policy_facts(f, kNanInputNames[i], kNanInputTexts[i], code));
  }
  return rows;
}

uint32_t encode_inf(const Format& f, const Unpacked& u, Overflow overflow, InfInput inf) {
  return encode_unpacked(f, {.rounding = Rounding::nearest_even, .overflow = overflow, .inf = inf}, u, {});
}

std::vector<Facts> inf_policies(const Format& f, const Unpacked& u) {
  return {policy_facts(f, "saturate", "the largest finite value (PTX .satfinite)",
                       encode_inf(f, u, Overflow::saturate, InfInput::overflow)),
          policy_facts(f, "to-special", "Inf, or NaN where there is no Inf; the largest value where there is neither",
                       encode_inf(f, u, Overflow::to_special, InfInput::overflow)),
          policy_facts(f, "saturate, inf to-nan", "finite values saturate, an infinite one becomes NaN (ml_dtypes)",
                       encode_inf(f, u, Overflow::saturate, InfInput::to_nan))};
}

std::vector<Facts> negative_policies(const Format& f, const Unpacked& u) {
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < kNegativeInputNames.size(); ++i) {
    const Policy policy{
        .rounding = Rounding::nearest_even, .overflow = Overflow::saturate, .negative = NegativeInput(i)};
    rows.push_back(policy_facts(f, kNegativeInputNames[i], kNegativeInputTexts[i], encode_unpacked(f, policy, u, {})));
  }
  return rows;
}

// Whether the tie between the largest finite value and the one that would be next goes to the largest.
bool tie_stays_in_range(const Question& q) {
  const Policy policy = policy_of(Rounding::nearest_even, Overflow::to_special);
  return encode(q.f, policy, midpoint_above(q.f, q.f.max_code())) == q.f.max_code();
}

std::string place_remark(const Question& q, std::string_view name) {
  const std::string max = decimal(q.signed_value(magnitude_value(q.f, q.f.max_code())));
  switch (q.place.kind) {
    case Place::Kind::exact: return fmt::format("{} has this value: every rounding keeps it.", name);
    case Place::Kind::below_smallest:
      return fmt::format("{} has no zero, and its smallest value is {}: every rounding gives that.", name,
                         decimal(q.place.lower_value));
    case Place::Kind::beyond:
      return fmt::format(
          "Beyond {}, the largest finite value of {}. The next one would be {}; nearest-even leaves the "
          "range {} {}.",
          max, name, q.upper_text(), tie_stays_in_range(q) ? "beyond" : "at",
          decimal(q.signed_value(midpoint_above(q.f, q.f.max_code()))));
    case Place::Kind::between: break;
  }
  if (q.upper_exists()) return "";
  return fmt::format("Past {}, the largest finite value of {}, on the way to {}, which would be next.", max, name,
                     q.upper_text());
}

// Adds all that is to say about a finite number.
void explain_finite(ValueExplanation& e, const FormatEntry& entry, int random_bits) {
  const Format& f = entry.format;
  Unpacked u = unpack(e.input);
  if (f.sign == Sign::none && std::signbit(e.input.value)) {
    e.policies = negative_policies(f, u);
    e.remarks.push_back(fmt::format("{} has no sign. What follows is for {}.", entry.name, decimal(-e.input.value)));
    u.negative = false;
  }
  const double magnitude = std::fabs(e.input.value), x = u.negative ? -magnitude : magnitude;
  const Question q{.f = f,
                   .u = u,
                   .x = x,
                   .x_text = e.input.type == SourceType::f32 ? decimal(float(x)) : decimal(x),
                   .place = place_of(f, u, magnitude),
                   .random_bits = random_bits};
  const std::string remark = place_remark(q, entry.name);
  if (!remark.empty()) e.remarks.push_back(remark);
  e.picture = picture(q);
  if (q.place.kind != Place::Kind::below_smallest) {
    e.neighbours = neighbours(q);
    e.ulp = q.place.ulp;
  }
  e.saturating = answers(q, Overflow::saturate);
  e.to_special = answers(q, Overflow::to_special);
  e.intervals = intervals(q);
  if (q.place.kind == Place::Kind::between) e.odds = {.random_bits = random_bits, .away_words = away_words(q)};
}

std::string reading_text(const SourceNumber& input) {
  const SourceTypeEntry& type = kSourceTypes[std::size_t(input.type)];
  const std::string exact = exact_decimal(input.value), shortest = decimal(input);
  std::string text = fmt::format("{} read as {}: {}", input.text, type.spoken, shortest);
  if (!exact.empty() && exact != shortest) text += ", exactly " + exact;
  if (std::isfinite(input.value)) text += ", " + hex_float(input.value);
  return text + fmt::format(", bits {}\n", hex_bits(input.bits, type.bits));
}

std::string plural(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string format_text(const FormatEntry& entry) {
  const Format& f = entry.format;
  return fmt::format("{}: {}, {}, {}, bias {}; {}\n", entry.name, plural(f.sign == Sign::one_bit, "sign bit"),
                     plural(f.exponent_bits, "exponent bit"), plural(f.mantissa_bits, "mantissa bit"), f.bias,
                     entry.source);
}

std::string titled(std::string_view title, const std::vector<Facts>& rows, Color color) {
  return rows.empty() ? "" : fmt::format("\n{}{}", title, to_text(to_table(rows), color));
}

std::string answers_text(const ValueExplanation& e, Color color) {
  if (to_json(e.saturating) == to_json(e.to_special)) return titled("", e.saturating, color);
  const bool inf = kFormats[std::size_t(e.format_id)].format.has_inf();
  return titled("Where overflow saturates (PTX .satfinite):\n", e.saturating, color) +
         titled(inf ? "Where overflow goes to Inf:\n" : "Where overflow goes to NaN:\n", e.to_special, color);
}

std::string interval_line(const Facts& facts, std::string_view condition) {
  return fmt::format("Nearest-even gives {} to every number in {}{}.\n", facts[1].text, facts[2].text, condition);
}

// Requires intervals.
std::string intervals_text(const ValueExplanation& e) {
  const Facts &saturating = e.intervals[0], &special = e.intervals[1];
  if (saturating[2].text == special[2].text) return interval_line(saturating, "");
  const bool inf = kFormats[std::size_t(e.format_id)].format.has_inf();
  return interval_line(saturating, " where overflow saturates") +
         interval_line(special, inf ? " where it goes to Inf" : " where it goes to NaN");
}

}  // namespace

ValueExplanation explain_value(const SourceNumber& input, int format_id, int random_bits) {
  const FormatEntry& entry = kFormats[std::size_t(format_id)];
  ValueExplanation e{.input = input, .format_id = format_id};
  const Unpacked u = unpack(input);
  switch (u.kind) {
    case Unpacked::Kind::finite: explain_finite(e, entry, random_bits); break;
    case Unpacked::Kind::inf:
      e.remarks.emplace_back("An infinite number has no neighbours; what becomes of it is a policy:");
      e.policies = inf_policies(entry.format, u);
      break;
    case Unpacked::Kind::nan:
      e.remarks.emplace_back("NaN has no neighbours; what becomes of it is a policy:");
      e.policies = nan_policies(entry.format, u);
      break;
  }
  return e;
}

std::string to_text(const ValueExplanation& e, Color color) {
  std::string text = reading_text(e.input) + format_text(kFormats[std::size_t(e.format_id)]);
  for (const std::string& remark : e.remarks) text += remark + '\n';
  text += titled("", e.policies, color);
  if (!e.picture.empty()) text += '\n' + e.picture;
  text += titled("", e.neighbours, color);
  if (e.ulp) text += fmt::format("One ulp is {} here ({}).\n", decimal(*e.ulp), hex_float(*e.ulp));
  text += answers_text(e, color);
  return e.intervals.empty() ? text : fmt::format("{}\n{}", text, intervals_text(e));
}

Json to_json(const ValueExplanation& e) {
  const SourceTypeEntry& type = kSourceTypes[std::size_t(e.input.type)];
  Json json = {{"input",
                {{"text", e.input.text},
                 {"as", std::string(type.name)},
                 {"value", e.input.value},
                 {"hex", hex_float(e.input.value)},
                 {"bits", hex_bits(e.input.bits, type.bits)}}},
               {"format", std::string(kFormats[std::size_t(e.format_id)].name)},
               {"remarks", e.remarks},
               {"neighbours", to_json(e.neighbours)},
               {"policies", to_json(e.policies)},
               {"answers", {{"saturate", to_json(e.saturating)}, {"to-special", to_json(e.to_special)}}},
               {"intervals", to_json(e.intervals)}};
  if (e.ulp) json["ulp"] = *e.ulp;
  if (e.odds) {
    json["stochastic"] = {{"random_bits", e.odds->random_bits},
                          {"away_words", e.odds->away_words},
                          {"probability_away", std::ldexp(double(e.odds->away_words), -e.odds->random_bits)}};
  }
  return json;
}

}  // namespace halfulp
