#include "tools/captured_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "lib/error.h"
#include "tools/inputs.h"

namespace halfulp {
namespace {

const RoleEntry& role_named(std::string_view name) { return kRoles[std::size_t(find_role(name))]; }

// The tensor of a role in a layer and step: its own, or that of the role which it is the same as.
const Captured* tensor_of(const Capture& capture, const CapturedName& like, std::string_view role) {
  const auto is_it = [&](const Captured& c, std::string_view name) {
    return kRoles[std::size_t(c.name.place.role)].name == name && c.name.layer == like.layer &&
           c.name.step == like.step;
  };
  for (const std::string_view name : {role, role_named(role).same_as})
    for (const Captured& c : capture.tensors)
      if (!name.empty() && is_it(c, name)) return &c;
  return nullptr;
}

// The phase whose rules a product has: the trainer's does all three.
Phase phase_of(LinearProduct product, Phase captured) {
  if (captured == Phase::rl_trainer) return captured;
  return product == LinearProduct::fprop ? Phase::pretrain_fwd : Phase::pretrain_bwd;
}

ProductOperand operand_of(const Capture& capture, const Captured& c, Phase phase, std::string_view role,
                          uint64_t seed) {
  const RoleRule& rule = rule_of(capture.policy, {.phase = phase, .role = find_role(role)},
                                 layer_number(c.name.layer).value_or(0), capture.layers);
  ProductOperand operand = load_operand(c.tensor, role_named(role).axis == -1 ? Along::rows : Along::columns);
  operand.recipe = rule.recipe;
  operand.rotation = rotation_of(rule, c.name, seed);
  operand.name = fmt::format("{}/{}/{}", role, c.name.layer, c.name.step.value_or(0));
  return operand;
}

bool is_whole(const ProductOperand& operand) {
  return operand.recipe == nullptr || refusal(*operand.recipe, operand.shape).empty();
}

// Of the layer and step of `like`, the product whose first operand has the role.
std::optional<CapturedProduct> product_of(const Capture& capture, const CapturedName& like, std::string_view role) {
  const LinearProduct product = role_named(role).product;
  const Captured* const a = tensor_of(capture, like, role);
  const Captured* const b = tensor_of(capture, like, role_named(role).partner);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const RolePlace place{.phase = phase_of(product, like.place.phase), .role = find_role(role)};
  return CapturedProduct{
      .product = product, .name = {.place = place, .layer = like.layer, .step = like.step}, .a = a, .b = b};
}

// What a linear layer's tensors are grouped by; pretraining's two phases are of one layer.
auto group_of(const CapturedName& name) {
  return std::tuple(name.place.phase == Phase::rl_trainer, name.layer, name.step);
}

}  // namespace

std::vector<CapturedProduct> products_of(const Capture& capture) {
  std::vector<CapturedProduct> products;
  std::vector<decltype(group_of(CapturedName{}))> seen;
  for (const Captured& c : capture.tensors) {
    const bool is_operand = kRoles[std::size_t(c.name.place.role)].product != LinearProduct::none;
    if (!is_operand || std::ranges::find(seen, group_of(c.name)) != seen.end()) continue;
    seen.push_back(group_of(c.name));
    for (const char* role : {"x_fprop", "dy_dgrad", "dy_wgrad"})
      if (const std::optional<CapturedProduct> product = product_of(capture, c.name, role))
        products.push_back(*product);
  }
  return products;
}

std::optional<ProductExperiment> experiment_of(const Capture& capture, const CapturedProduct& product, uint64_t seed,
                                               std::size_t draws) {
  const RolePlace& place = product.name.place;
  const RoleEntry& role = kRoles[std::size_t(place.role)];
  ProductExperiment experiment{.a = operand_of(capture, *product.a, place.phase, role.name, seed),
                               .b = operand_of(capture, *product.b, place.phase, role.partner, seed),
                               .seed = seed,
                               .draws = draws};
  if (experiment.a.shape.cols != experiment.b.shape.cols)
    throw InputError(
        where(product.b->tensor),
        fmt::format("has shape {}, which does not fit {} of shape {} as operands of {}",
                    shape_text(product.b->tensor.shape), product.a->tensor.name, shape_text(product.a->tensor.shape),
                    kLinearProductNames[std::size_t(product.product)]));
  if (!is_whole(experiment.a) || !is_whole(experiment.b)) return std::nullopt;
  return experiment;
}

Json figures_of(const CapturedProduct& product, const ProductExperiment& experiment, int threads,
                const std::function<void()>& drawn) {
  const bool over_tokens = product.product == LinearProduct::wgrad;
  Json json = product_figures(experiment, over_tokens ? SumsOver::tokens : SumsOver::features, threads, drawn);
  json["product"] = std::string(kLinearProductNames[std::size_t(product.product)]);
  json["phase"] = std::string(kPhases[std::size_t(product.name.place.phase)].name);
  json["layer"] = product.name.layer;
  json["step"] = product.name.step ? Json(*product.name.step) : Json();
  return json;
}

}  // namespace halfulp
