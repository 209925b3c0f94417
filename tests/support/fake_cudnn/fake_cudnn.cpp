// SPDX-License-Identifier: Apache-2.0
#include "fake_cudnn.hpp"

#include "trireme/base/format.hpp"

#include "attribute_rules.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace trireme::testing {

using namespace device::cudnn;

namespace {

FakeCudnn* only_one = nullptr;

std::size_t size_of(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::character:
      return 1;
    case Type::data_type:
    case Type::heuristics_mode:
    case Type::numerical_note:
    case Type::pointwise_mode:
    case Type::reduction_mode:
      return 4;
    case Type::handle:
    case Type::int64:
    case Type::void_pointer:
    case Type::descriptor:
      return 8;
  }
  misuse("an attribute of no known type");
}

std::string text_of(const CudnnDescriptor& descriptor, Attribute attribute) {
  return base::format("attribute {} of descriptor kind {}", static_cast<int>(attribute),
                      static_cast<int>(descriptor.kind));
}

void check_tensor(const CudnnDescriptor& tensor) {
  const auto sizes = tensor.all<std::int64_t>(Attribute::tensor_dims);
  const auto strides = tensor.all<std::int64_t>(Attribute::tensor_strides);
  const bool fits = sizes.size() == tensor_dimensions && strides.size() == tensor_dimensions;
  if (!fits || *std::min_element(sizes.begin(), sizes.end()) < 1) misuse("a tensor of no shape");
}

}  // namespace

void misuse(const std::string& what) {
  throw std::logic_error("misuse of cuDNN: " + what);
}

/// The functions of the table.
struct FakeCudnnCalls {
  static FakeCudnn& fake() {
    if (only_one == nullptr) misuse("a call after its end");
    return *only_one;
  }
  static std::size_t version() { return fake().version; }
  static const char* status_text(Status) { return "refused by the stand-in"; }
  static void last_message(char* text, std::size_t size) {
    if (size > 0) *text = '\0';
  }
  static Status create(Handle* handle) {
    static int next = 0;
    *handle = reinterpret_cast<Handle>(static_cast<std::uintptr_t>(++next));
    fake().handles_[*handle] = std::nullopt;
    return Status::success;
  }
  static Status destroy(Handle handle) {
    if (fake().handles_.erase(handle) == 0) misuse("a handle that there is not");
    return Status::success;
  }
  static Status set_stream(Handle handle, void* stream) {
    fake().handles_.at(handle) = stream;
    return Status::success;
  }
  static Status create_descriptor(Kind kind, RawDescriptor* raw) {
    auto descriptor = std::make_unique<CudnnDescriptor>();
    descriptor->kind = kind;
    *raw = descriptor.get();
    fake().descriptors_[*raw] = std::move(descriptor);
    return Status::success;
  }
  static Status destroy_descriptor(RawDescriptor raw) {
    fake().before_destruction_of(fake().find(raw));
    fake().descriptors_.erase(raw);
    return Status::success;
  }
  static Status set_attribute(RawDescriptor raw, Attribute attribute, Type type, std::int64_t count,
                              const void* values) {
    const auto* bytes = static_cast<const std::byte*>(values);
    const auto size = static_cast<std::size_t>(count) * size_of(type);
    fake().set(fake().find(raw), attribute, {type, count, {bytes, bytes + size}});
    return Status::success;
  }
  static Status get_attribute(RawDescriptor raw, Attribute attribute, Type, std::int64_t most,
                              std::int64_t* count, void* values) {
    fake().get(fake().find(raw), attribute, most, *count, values);
    return Status::success;
  }
  static Status finalize(RawDescriptor raw) {
    auto& descriptor = fake().find(raw);
    fake().finalize(descriptor);
    return descriptor.finalized ? Status::success : Status::not_supported;
  }
  static Status execute(Handle handle, RawDescriptor plan, RawDescriptor pack) {
    fake().execute(handle, fake().find(plan), fake().find(pack));
    return Status::success;
  }
};

FakeCudnn::FakeCudnn() {
  if (only_one != nullptr) misuse("a second stand-in");
  only_one = this;
  using Calls = FakeCudnnCalls;
  api_ = {Calls::version,           Calls::status_text,
          Calls::last_message,      Calls::create,
          Calls::destroy,           Calls::set_stream,
          Calls::create_descriptor, Calls::destroy_descriptor,
          Calls::set_attribute,     Calls::get_attribute,
          Calls::finalize,          Calls::execute};
}

FakeCudnn::~FakeCudnn() {
  only_one = nullptr;
}

CudnnDescriptor& FakeCudnn::find(RawDescriptor raw) {
  const auto found = descriptors_.find(raw);
  if (found == descriptors_.end()) misuse("a descriptor that there is not");
  return *found->second;
}

void FakeCudnn::set(CudnnDescriptor& descriptor, Attribute attribute, CudnnValue value) {
  const auto& rules = rules_of(descriptor.kind);
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const AttributeRule& candidate) {
    return candidate.attribute == attribute;
  });
  const auto what = text_of(descriptor, attribute);
  if (rule == rules.end()) misuse("there is no " + what);
  if (rule->type != value.type) misuse(what + " has another type");
  if (value.count < 1 || value.count > rule->most) misuse(what + " has another count");
  if (descriptor.finalized) misuse(what + " is set after it is final");
  if (descriptor.has(attribute)) misuse(what + " is set twice");
  if (value.type == Type::descriptor) {
    for (auto* raw : value.as<RawDescriptor>()) {
      if (!find(raw).finalized) misuse(what + " is not final");
    }
  }
  descriptor.values.emplace(attribute, std::move(value));
}

void FakeCudnn::finalize(CudnnDescriptor& descriptor) {
  for (const auto& rule : rules_of(descriptor.kind)) {
    if (rule.required && !descriptor.has(rule.attribute)) {
      misuse(text_of(descriptor, rule.attribute) + " is missing");
    }
  }
  if (descriptor.kind == Kind::tensor) check_tensor(descriptor);
  if (descriptor.kind == Kind::execution_plan) {
    descriptor.engine = descriptor.descriptor(Attribute::plan_config).engine;
    if (!descriptor.engine.can_be_made_ready) return;
    ++plans_made;
  }
  descriptor.finalized = true;
}

void FakeCudnn::get_results(CudnnDescriptor& heuristics, std::int64_t most, std::int64_t& count,
                            void* values) {
  const bool first_choice =
      heuristics.one<HeuristicsMode>(Attribute::heuristics_mode) == HeuristicsMode::fastest_first;
  count = first_choice ? static_cast<std::int64_t>(engines.size()) : 0;
  if (most == 0) return;
  count = std::min(count, most);
  auto** raws = static_cast<RawDescriptor*>(values);
  for (std::int64_t index = 0; index < count; ++index) {
    auto& config = find(raws[index]);
    if (config.kind != Kind::engine_config) misuse("results are engine configurations");
    config.engine = engines[static_cast<std::size_t>(index)];
    config.values[Attribute::heuristics_graph] = heuristics.values.at(Attribute::heuristics_graph);
    config.finalized = true;
  }
}

void FakeCudnn::get(CudnnDescriptor& descriptor, Attribute attribute, std::int64_t most,
                    std::int64_t& count, void* values) {
  if (!descriptor.finalized) misuse(text_of(descriptor, attribute) + " is read before it is final");
  if (attribute == Attribute::heuristics_results) {
    get_results(descriptor, most, count, values);
  } else if (attribute == Attribute::config_engine) {
    auto& engine = find(*static_cast<RawDescriptor*>(values));
    engine.engine = descriptor.engine;
    engine.finalized = true;
    count = 1;
  } else if (attribute == Attribute::engine_numerical_notes) {
    count = descriptor.engine.repeats ? 0 : 1;
    if (count > 0) *static_cast<NumericalNote*>(values) = NumericalNote::nondeterministic;
  } else if (attribute == Attribute::plan_workspace_size) {
    *static_cast<std::int64_t*>(values) =
        static_cast<std::int64_t>(descriptor.engine.workspace_bytes);
    count = 1;
  } else {
    misuse("nobody can read " + text_of(descriptor, attribute));
  }
}

/// Tensors by value when a run is issued, four bytes each: the caller's numbers may be gone when it
/// runs.
std::map<std::int64_t, std::uint32_t> FakeCudnn::numbers_of(
    const CudnnDescriptor& graph, const std::map<std::int64_t, void*>& addresses) {
  std::map<std::int64_t, std::uint32_t> numbers;
  for (auto* const raw : graph.all<RawDescriptor>(Attribute::graph_operations)) {
    for (const auto& [attribute, value] : find(raw).values) {
      if (value.type != Type::descriptor) continue;
      const auto& tensor = find(value.as<RawDescriptor>().front());
      if (tensor.kind != Kind::tensor || !tensor.has(Attribute::tensor_is_by_value) ||
          !tensor.one<bool>(Attribute::tensor_is_by_value)) {
        continue;
      }
      const auto id = tensor.one<std::int64_t>(Attribute::tensor_id);
      if (!addresses.contains(id)) misuse("a tensor without an address");
      std::memcpy(&numbers[id], addresses.at(id), sizeof(std::uint32_t));
    }
  }
  return numbers;
}

void FakeCudnn::execute(Handle handle, const CudnnDescriptor& plan, const CudnnDescriptor& pack) {
  if (!plan.finalized || !pack.finalized) misuse("a run of what is not final");
  if (!handles_.contains(handle) || !handles_.at(handle).has_value())
    misuse("a run without a stream");
  if (plan.one<void*>(Attribute::plan_handle) != handle) misuse("a plan of another handle");
  const auto ids = pack.all<std::int64_t>(Attribute::pack_ids);
  const auto pointers = pack.all<void*>(Attribute::pack_pointers);
  if (ids.size() != pointers.size()) misuse("as many ids as pointers are needed");
  std::map<std::int64_t, void*> addresses;
  for (std::size_t index = 0; index < ids.size(); ++index) {
    if (pointers[index] == nullptr) misuse("an address of nothing");
    if (!addresses.emplace(ids[index], pointers[index]).second) misuse("an id twice");
  }
  const auto& graph =
      plan.descriptor(Attribute::plan_config).descriptor(Attribute::heuristics_graph);
  constexpr std::size_t zeroes_itself = 90600;
  const auto sums = version < zeroes_itself ? Sums::as_found : Sums::made_zero;
  auto work = [addresses, &graph, bytes = plan.engine.workspace_bytes,
               workspace = pack.one<void*>(Attribute::pack_workspace),
               numbers = numbers_of(graph, addresses), sums]() mutable {
    constexpr int poison = 0xC5;
    std::memset(workspace, poison, bytes);
    for (auto& [id, number] : numbers) addresses[id] = &number;
    interpret(graph, addresses, sums);
  };
  ++runs;
  if (!issue) return work();
  settled_ = false;
  issue(*handles_.at(handle), work);
}

/// Work that is under way has a copy of its variant pack, and uses all else.
void FakeCudnn::before_destruction_of(const CudnnDescriptor& descriptor) {
  if (settled_ || descriptor.kind == Kind::variant_pack || !settle) return;
  settle();
  settled_ = true;
}

}  // namespace trireme::testing
