#pragma once
// The phases of training and the roles that a tensor can have in them: what a policy and a capture speak of. Rows; an
// operand of a matrix product knows its product, the other operand, and the dimension that the product sums over.

#include <array>
#include <string_view>

namespace halfulp {

enum class Phase { pretrain_fwd, pretrain_bwd, rl_sampler, rl_trainer };

struct PhaseEntry {
  std::string_view name, meaning;
};
inline constexpr auto kPhases = std::to_array<PhaseEntry>({
    {"pretrain_fwd", "pretraining, forward pass"},
    {"pretrain_bwd", "pretraining, backward pass"},
    {"rl_sampler", "reinforcement learning: the policy that samples"},
    {"rl_trainer", "reinforcement learning: the policy that is trained, forward and backward"},
});
static_assert(kPhases.size() == std::size_t(Phase::rl_trainer) + 1);

// The three products of a linear layer, of x [tokens, in], w [out, in] and dy [tokens, out]. `none`: the role is no
// operand of them.
enum class LinearProduct { fprop, dgrad, wgrad, none };
inline constexpr std::array<std::string_view, 4> kLinearProductNames{"fprop", "dgrad", "wgrad", ""};

struct RoleEntry {
  std::string_view name, group, meaning;
  LinearProduct product = LinearProduct::none;
  std::string_view partner = {};  // the other operand
  std::string_view same_as = {};  // the role whose tensor it is too, before either is quantized
  int axis = -1;                  // from the end: what a product sums over, else the last
  bool of_layers = false;         // kept in another format in a policy's first and last layers
};

// clang-format off
inline constexpr auto kRoles = std::to_array<RoleEntry>({
    {"x_fprop", "linear", "activations of y = x w^T", LinearProduct::fprop, "w_fprop", "", -1, true},
    {"w_fprop", "linear", "weights of y = x w^T", LinearProduct::fprop, "x_fprop", "", -1, true},
    {"dy_dgrad", "linear", "output gradients of dx = dy w", LinearProduct::dgrad, "w_dgrad", "", -1, true},
    {"w_dgrad", "linear", "weights of dx = dy w", LinearProduct::dgrad, "dy_dgrad", "w_fprop", -2, true},
    {"dy_wgrad", "linear", "output gradients of dw = dy^T x", LinearProduct::wgrad, "x_wgrad", "dy_dgrad", -2, true},
    {"x_wgrad", "linear", "activations of dw = dy^T x", LinearProduct::wgrad, "dy_wgrad", "x_fprop", -2, true},
    {"y_out", "linear", "outputs"},
    {"main_grad", "gradient", "gradients that are summed up"},
    {"grad_comm", "gradient", "gradients that are sent"},
    {"residual", "stream", "the residual stream"},
    {"norm_affine", "stream", "gains and offsets of norms"},
    {"embedding", "stream", "embeddings"},
    {"lm_head", "stream", "weights of the output head"},
    {"logits", "stream", "logits"},
    {"softmax", "stream", "what a softmax gives"},
    {"attn_q", "attention", "queries"},
    {"attn_k", "attention", "keys"},
    {"attn_v", "attention", "values"},
    {"attn_p", "attention", "probabilities"},
    {"attn_o_accum", "attention", "outputs as they are summed up"},
    {"attn_delta", "attention", "row sums of the backward pass"},
    {"ssm_state", "ssm", "states of a state-space model"},
    {"ssm_conv", "ssm", "its convolution"},
    {"ssm_proj", "ssm", "its projections"},
    {"expert_w", "experts", "weights of routed experts", LinearProduct::none, "", "", -1, true},
    {"expert_x", "experts", "activations of routed experts", LinearProduct::none, "", "", -1, true},
    {"shared_w", "experts", "weights of shared experts", LinearProduct::none, "", "", -1, true},
    {"router", "experts", "the router"},
    {"samp_w", "sampler", "weights", LinearProduct::none, "", "", -1, true},
    {"samp_x", "sampler", "activations", LinearProduct::none, "", "", -1, true},
    {"samp_head", "sampler", "the output head"},
    {"kv_cache", "sampler", "cached keys and values"},
    {"samp_logprob", "sampler", "log-probabilities of what was sampled"},
    {"policy_bwd_w", "trainer", "weights of the backward pass", LinearProduct::none, "", "w_fprop", -1, true},
    {"ref_w", "trainer", "weights of the reference policy"},
    {"logprob", "trainer", "log-probabilities"},
});
// clang-format on

constexpr int find_phase(std::string_view name) {
  for (std::size_t i = 0; i < kPhases.size(); ++i)
    if (kPhases[i].name == name) return int(i);
  return -1;
}
constexpr int find_role(std::string_view name) {
  for (std::size_t i = 0; i < kRoles.size(); ++i)
    if (kRoles[i].name == name) return int(i);
  return -1;
}
static_assert([] {
  for (const RoleEntry& role : kRoles)
    if (!role.partner.empty() && kRoles[std::size_t(find_role(role.partner))].partner != role.name) return false;
  return true;
}());

}  // namespace halfulp
