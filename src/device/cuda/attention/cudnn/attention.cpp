// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/attention.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <algorithm>
#include <vector>

namespace trireme::device::cudnn {
namespace {

/// Bytes in which forward kernels count their tiles.
constexpr std::size_t forward_workspace_bytes = 4096;

/// The sequences, heads and rows that a part takes; lse as it lies.
AttentionBackward part_of(const AttentionBackward& whole, const BackwardPart& part) {
  const auto group = whole.forward.q.dim(2) / whole.forward.k.dim(2);
  const auto first_head = part.first_kv_head * group + part.first_of_group;
  const auto heads = part.kv_heads * part.of_group;
  auto result = whole;
  auto& forward = result.forward;
  for (auto* tensor : {&forward.q, &forward.out, &result.d_out, &result.dq}) {
    *tensor = tensor->slice(0, part.first_sequence, part.sequences)
                  .slice(1, part.first_query, part.queries)
                  .slice(2, first_head, heads);
  }
  for (auto* tensor : {&forward.k, &forward.v, &result.dk, &result.dv}) {
    *tensor = tensor->slice(0, part.first_sequence, part.sequences)
                  .slice(1, 0, part.keys)
                  .slice(2, part.first_kv_head, part.kv_heads);
  }
  // [batch, heads, queries]: contiguous unless queries are cut, as only one sequence's heads are.
  forward.lse = forward.lse.slice(0, part.first_sequence, part.sequences)
                    .slice(1, first_head, heads)
                    .slice(2, part.first_query, part.queries);
  return result;
}

std::string text_of(const AttentionExtents& extents) {
  return base::format("{} x {} tokens, {} heads of {}, {} of keys{}", extents.batch(),
                      extents.queries(), extents.heads(), extents.head_dim(), extents.kv_heads(),
                      extents.causal ? ", causal" : "");
}

/// The parts of a workspace, one behind the other.
class Places {
 public:
  explicit Places(std::byte* begin) : next_(begin) {}
  std::byte* take(std::size_t bytes) {
    auto* const place = next_;
    next_ += bytes;
    return place;
  }

 private:
  std::byte* next_;
};

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

FusedAttention::FusedAttention(const Api& api, Surroundings surroundings, const Settings& settings)
    : api_(api),
      context_(api, surroundings.stream),
      around_(std::move(surroundings)),
      settings_(settings),
      support_{api.version(), settings.capability} {}

std::size_t FusedAttention::workspace_bytes(const AttentionExtents& extents,
                                            const Settings& settings) {
  const BackwardParts parts(extents, settings.bits, settings.most_workspace_bytes);
  return std::max(forward_workspace_bytes, parts.workspace_bytes());
}

template <typename Extents, typename MakeGraph>
const Plan* FusedAttention::plan_for(std::map<Extents, std::optional<Plan>>& plans,
                                     const Extents& extents, const Plan::Limits& limits,
                                     const MakeGraph& graph) {
  if (const auto known = plans.find(extents); known != plans.end()) {
    return known->second ? &*known->second : nullptr;
  }
  auto made = Plan::make(api_, graph(api_, extents), {context_.handle(), nullptr}, limits);
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
  if (reason_against(attention, support_)) return false;
  const auto extents = AttentionExtents::of(attention);
  const auto* const plan = plan_for(
      forward_plans_, extents, {AttentionBits::repeatable, forward_workspace_bytes}, forward_graph);
  if (plan == nullptr) return false;
  auto scale = attention.scale;
  auto masked = masked_score(api_);
  std::map<Operand, void*> addresses{
      {Operand::q, attention.q.raw()},     {Operand::k, attention.k.raw()},
      {Operand::v, attention.v.raw()},     {Operand::out, attention.out.raw()},
      {Operand::lse, attention.lse.raw()}, {Operand::scale, &scale}};
  if (attention.causal) addresses[Operand::masked] = &masked;
  plan->run(context_.handle(), addresses, around_.workspace(forward_workspace_bytes));
  return true;
}

struct FusedAttention::Run {
  AttentionBackward call;
  const Plan* plan = nullptr;
  /// Log-sum-exps in the caller's tensor, if they are not contiguous.
  Tensor scattered_lse;
  Tensor row_sums;
  Tensor dq_sums;
  std::byte* library = nullptr;
  /// Sums over several runs, f32, and their destinations; empty where `call` has all terms.
  struct Sums {
    bool begin = false;
    bool end = false;
    Tensor dk, dv;
    Tensor whole_dk, whole_dv;
  } sums;
};

FusedAttention::Run FusedAttention::run_of(const AttentionBackward& whole, const BackwardPart& part,
                                           std::byte* workspace) const {
  const auto extents = AttentionExtents::of(whole.forward);
  const auto bytes = backward_bytes(extents, part, settings_.bits);
  Places places(workspace);
  Run run;
  auto& call = run.call = part_of(whole, part);
  const auto heads = call.forward.q.dim(2);
  if (part.terms == BackwardPart::Terms::some) {
    auto& sums = run.sums;
    const auto floats = [&](std::int64_t keys, std::size_t size) {
      return Tensor(places.take(size), DType::f32, {1, keys, 1, extents.head_dim()});
    };
    sums.dk = floats(extents.keys(), bytes.key_sums);
    sums.dv = floats(extents.keys(), bytes.key_sums);
    call.dk = floats(part.keys, bytes.key_terms);
    call.dv = floats(part.keys, bytes.key_terms);
    sums.begin = part.first_of_group == 0 && part.first_query == 0;
    sums.end = part.first_of_group + part.of_group == extents.heads() / extents.kv_heads() &&
               part.first_query + part.queries == extents.queries();
    const auto of_head = [&](const Tensor& tensor) {
      return tensor.slice(0, part.first_sequence, 1).slice(2, part.first_kv_head, 1);
    };
    sums.whole_dk = of_head(whole.dk);
    sums.whole_dv = of_head(whole.dv);
    run.scattered_lse = call.forward.lse;
    call.forward.lse = Tensor(places.take(bytes.lse), DType::f32, {1, heads, part.queries});
  }
  const auto rows = part.sequences * heads * part.queries;
  run.row_sums = Tensor(places.take(bytes.row_sums), DType::f32, {rows});
  run.dq_sums = Tensor(places.take(bytes.dq_sums), DType::f32, {rows, extents.head_dim()});
  run.library = places.take(bytes.library);
  return run;
}

bool FusedAttention::backward(const AttentionBackward& backward) {
  if (reason_against(backward, support_)) return false;
  const BackwardParts parts(AttentionExtents::of(backward.forward), settings_.bits,
                            settings_.most_workspace_bytes);
  auto* const workspace = static_cast<std::byte*>(around_.workspace(parts.workspace_bytes()));
  std::vector<Run> runs;
  for (const auto& part : parts.list()) {
    auto& each = runs.emplace_back(run_of(backward, part, workspace));
    const auto room = parts.workspace_bytes() - static_cast<std::size_t>(each.library - workspace);
    each.plan = plan_for(backward_plans_, AttentionBackwardExtents::of(each.call, settings_.bits),
                         {settings_.bits, room}, backward_graph);
    if (each.plan == nullptr) return false;
  }
  for (const auto& each : runs) run(each);
  return true;
}

void FusedAttention::run(const Run& run) {
  auto& kernels = around_.kernels;
  const auto& sums = run.sums;
  if (run.scattered_lse) kernels.issue(Copy{run.scattered_lse, run.call.forward.lse});
  if (sums.begin) {
    kernels.issue(Fill{sums.dk, 0.0F});
    kernels.issue(Fill{sums.dv, 0.0F});
  }
  run_plan(run);
  if (!sums.dk) return;
  const auto keys = run.call.dk.dim(1);
  kernels.issue(Accumulate{run.call.dk, sums.dk.slice(1, 0, keys)});
  kernels.issue(Accumulate{run.call.dv, sums.dv.slice(1, 0, keys)});
  if (!sums.end) return;
  kernels.issue(Copy{sums.dk, sums.whole_dk});
  kernels.issue(Copy{sums.dv, sums.whole_dv});
}

void FusedAttention::run_plan(const Run& run) {
  const auto& forward = run.call.forward;
  auto scale = forward.scale;
  auto masked = masked_score(api_);
  float one = 1.0F;
  auto keys = static_cast<std::int32_t>(forward.k.dim(1));
  auto queries = static_cast<std::int32_t>(forward.q.dim(1));
  std::map<Operand, void*> addresses{
      {Operand::q, forward.q.raw()},     {Operand::k, forward.k.raw()},
      {Operand::v, forward.v.raw()},     {Operand::out, forward.out.raw()},
      {Operand::lse, forward.lse.raw()}, {Operand::d_out, run.call.d_out.raw()},
      {Operand::dq, run.call.dq.raw()},  {Operand::dk, run.call.dk.raw()},
      {Operand::dv, run.call.dv.raw()},  {Operand::row_sums, run.row_sums.raw()},
      {Operand::scale, &scale},          {Operand::one, &one}};
  if (forward.causal) addresses[Operand::masked] = &masked;
  if (forward.causal && keys != queries) {
    addresses[Operand::key_count] = &keys;
    addresses[Operand::query_count] = &queries;
  }
  if (settings_.bits == AttentionBits::fastest) {
    addresses[Operand::dq_sums] = run.dq_sums.raw();
    if (wants_zeros(api_)) around_.kernels.issue(Fill{run.dq_sums, 0.0F});
  }
  run.plan->run(context_.handle(), addresses, run.library);
}

}  // namespace trireme::device::cudnn
