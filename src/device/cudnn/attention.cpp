#include "device/cudnn/attention.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <algorithm>

namespace trireme::device::cudnn {
namespace {

/// Forward kernels count their tiles there.
constexpr std::size_t forward_workspace_bytes = 4096;
constexpr std::size_t granule = 256;

std::size_t row_sums_bytes(const AttentionExtents& extents) {
  const auto bytes =
      static_cast<std::size_t>(extents.batch() * extents.heads() * extents.queries()) *
      sizeof(float);
  return (bytes + granule - 1) / granule * granule;
}

Tensor part_of(const Tensor& tensor, const FusedAttention::Part& part, std::int64_t group) {
  return tensor.slice(0, part.first_sequence, part.sequences)
      .slice(2, part.first_kv_head * group, part.kv_heads * group);
}

AttentionBackward part_of(const AttentionBackward& whole, const FusedAttention::Part& part) {
  const auto group = whole.forward.q.dim(2) / whole.forward.k.dim(2);
  auto result = whole;
  auto& forward = result.forward;
  for (auto* tensor : {&forward.q, &forward.out, &result.d_out, &result.dq}) {
    *tensor = part_of(*tensor, part, group);
  }
  for (auto* tensor : {&forward.k, &forward.v, &result.dk, &result.dv}) {
    *tensor = part_of(*tensor, part, 1);
  }
  // [batch, heads, queries]: contiguous, because only a single sequence is cut by heads.
  forward.lse = forward.lse.slice(0, part.first_sequence, part.sequences)
                    .slice(1, part.first_kv_head * group, part.kv_heads * group);
  return result;
}

/// So many sequences of so many key heads each.
AttentionExtents shrunk(const AttentionExtents& whole, std::int64_t sequences,
                        std::int64_t kv_heads) {
  auto part = whole;
  const auto group = whole.heads() / whole.kv_heads();
  for (auto* extents : {&part.q, &part.k, &part.v, &part.out}) extents->dims[0] = sequences;
  part.q.dims[1] = part.out.dims[1] = kv_heads * group;
  part.k.dims[1] = part.v.dims[1] = kv_heads;
  return part;
}

std::string text_of(const AttentionExtents& extents) {
  return base::format("{} x {} tokens, {} heads of {}, {} of keys{}", extents.batch(),
                      extents.queries(), extents.heads(), extents.head_dim(), extents.kv_heads(),
                      extents.causal ? ", causal" : "");
}

}  // namespace

Context::Context(const Api& api, void* stream) : api_(api) {
  check(api, api.create(&handle_), "cudnnCreate");
  if (const auto status = api.set_stream(handle_, stream); status != Status::success) {
    api.destroy(handle_);
    check(api, status, "cudnnSetStream");
  }
}

Context::~Context() {
  if (const auto status = api_.destroy(handle_); status != Status::success) {
    base::log::local::warning("device", "cudnnDestroy: {}", api_.status_text(status));
  }
}

FusedAttention::FusedAttention(const Api& api, void* stream, Workspace workspace)
    : api_(api), context_(api, stream), workspace_(std::move(workspace)) {}

std::vector<FusedAttention::Part> FusedAttention::parts_of(const AttentionExtents& extents,
                                                           std::size_t most_bytes) {
  const auto of_one = backward_workspace_bytes(shrunk(extents, 1, extents.kv_heads()));
  const auto most =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(most_bytes / of_one), 1, extents.batch());
  // As even as can be: of a short last part a card would be half empty.
  const auto runs = (extents.batch() + most - 1) / most;
  const auto sequences = (extents.batch() + runs - 1) / runs;
  auto kv_heads = extents.kv_heads();
  while (kv_heads > 1 &&
         backward_workspace_bytes(shrunk(extents, sequences, kv_heads)) > most_bytes) {
    kv_heads = (kv_heads + 1) / 2;
  }
  std::vector<Part> parts;
  for (std::int64_t sequence = 0; sequence < extents.batch(); sequence += sequences) {
    for (std::int64_t head = 0; head < extents.kv_heads(); head += kv_heads) {
      parts.push_back({sequence, std::min(sequences, extents.batch() - sequence), head,
                       std::min(kv_heads, extents.kv_heads() - head)});
    }
  }
  return parts;
}

std::size_t FusedAttention::workspace_bytes(const AttentionExtents& extents,
                                            std::size_t most_workspace) {
  std::size_t bytes = forward_workspace_bytes;
  for (const auto& part : parts_of(extents, most_workspace)) {
    bytes =
        std::max(bytes, backward_workspace_bytes(shrunk(extents, part.sequences, part.kv_heads)));
  }
  return bytes;
}

template <typename Extents, typename MakeGraph>
const Plan* FusedAttention::plan_for(std::map<Extents, std::optional<Plan>>& plans,
                                     const Extents& extents, std::size_t most_bytes,
                                     const MakeGraph& graph) {
  if (const auto known = plans.find(extents); known != plans.end()) {
    return known->second ? &*known->second : nullptr;
  }
  auto made = Plan::make(api_, graph(api_, extents), {context_.handle(), nullptr}, most_bytes);
  auto& place = plans[extents];
  if (made.ok()) {
    place = std::move(made).value();
    return &*place;
  }
  const auto* shape = [&] {
    if constexpr (requires { extents.forward; }) {
      return &extents.forward;
    } else {
      return &extents;
    }
  }();
  base::log::local::warning("device",
                            "cuDNN has no attention for {} ({}); own kernels compute it, slower",
                            text_of(*shape), made.failure().text);
  return nullptr;
}

bool FusedAttention::forward(const Attention& attention) {
  if (!reason_against(attention).empty()) return false;
  const auto extents = AttentionExtents::of(attention);
  const auto* const plan =
      plan_for(forward_plans_, extents, forward_workspace_bytes, forward_graph);
  if (plan == nullptr) return false;
  auto scale = attention.scale;
  auto masked = masked_score(api_);
  std::map<Operand, void*> addresses{
      {Operand::q, attention.q.raw()},     {Operand::k, attention.k.raw()},
      {Operand::v, attention.v.raw()},     {Operand::out, attention.out.raw()},
      {Operand::lse, attention.lse.raw()}, {Operand::scale, &scale}};
  if (attention.causal) addresses[Operand::masked] = &masked;
  plan->run(context_.handle(), addresses, workspace_(forward_workspace_bytes));
  return true;
}

bool FusedAttention::backward(const AttentionBackward& backward, std::size_t most_workspace) {
  if (!reason_against(backward).empty()) return false;
  const auto whole = AttentionExtents::of(backward.forward);
  const auto bytes = workspace_bytes(whole, most_workspace);
  std::vector<std::pair<AttentionBackward, const Plan*>> runs;
  for (const auto& place : parts_of(whole, most_workspace)) {
    const auto part = part_of(backward, place);
    const auto extents = AttentionBackwardExtents::of(part);
    const auto* const plan =
        plan_for(backward_plans_, extents, bytes - row_sums_bytes(extents.forward), backward_graph);
    if (plan == nullptr) return false;
    runs.emplace_back(part, plan);
  }
  for (const auto& [part, plan] : runs) run_part(part, *plan, bytes);
  return true;
}

void FusedAttention::run_part(const AttentionBackward& part, const Plan& plan,
                              std::size_t workspace_bytes) {
  const auto extents = AttentionExtents::of(part.forward);
  auto* const workspace = static_cast<std::byte*>(workspace_(workspace_bytes));
  auto scale = part.forward.scale;
  auto masked = masked_score(api_);
  float one = 1.0F;
  std::map<Operand, void*> addresses{{Operand::q, part.forward.q.raw()},
                                     {Operand::k, part.forward.k.raw()},
                                     {Operand::v, part.forward.v.raw()},
                                     {Operand::out, part.forward.out.raw()},
                                     {Operand::lse, part.forward.lse.raw()},
                                     {Operand::d_out, part.d_out.raw()},
                                     {Operand::dq, part.dq.raw()},
                                     {Operand::dk, part.dk.raw()},
                                     {Operand::dv, part.dv.raw()},
                                     {Operand::row_sums, workspace},
                                     {Operand::scale, &scale},
                                     {Operand::one, &one}};
  if (part.forward.causal) addresses[Operand::masked] = &masked;
  plan.run(context_.handle(), addresses, workspace + row_sums_bytes(extents));
}

}  // namespace trireme::device::cudnn
