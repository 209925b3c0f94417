// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/abi.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::testing {

/// An engine of the stand-in, in the order in which its heuristics name them.
struct CudnnEngine {
  bool repeats = true;
  bool can_be_made_ready = true;
  std::size_t workspace_bytes = 512;
};

/// Values that were set of an attribute.
struct CudnnValue {
  device::cudnn::Type type{};
  std::int64_t count = 0;
  std::vector<std::byte> bytes;

  template <typename T>
  std::vector<T> as() const {
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    return std::vector<T>(first, first + count);
  }
};

struct CudnnDescriptor {
  device::cudnn::Kind kind{};
  bool finalized = false;
  std::map<device::cudnn::Attribute, CudnnValue> values;
  /// Engine of an engine configuration and what is made of it.
  CudnnEngine engine;

  bool has(device::cudnn::Attribute attribute) const { return values.contains(attribute); }
  template <typename T>
  std::vector<T> all(device::cudnn::Attribute attribute) const {
    return values.at(attribute).as<T>();
  }
  template <typename T>
  T one(device::cudnn::Attribute attribute) const {
    return all<T>(attribute).front();
  }
  const CudnnDescriptor& descriptor(device::cudnn::Attribute attribute) const {
    return *static_cast<const CudnnDescriptor*>(one<void*>(attribute));
  }
};

/// Stands in for cuDNN where there is no GPU: the same functions over descriptors in host memory.
/// It knows no attention: it computes operation by operation what a graph says, in the extents,
/// types and from the addresses that descriptors and variant pack give, and fills the workspace
/// with poison. A product in memory that the graph reads again is added to what lies there, as
/// blocks of the real library do; from 9.6 on it is made zero before. Misuse throws
/// std::logic_error: attributes that a descriptor lacks or does not have, of the wrong type or
/// count, used before or changed after they are finalized, values that no operation has computed,
/// addresses for nothing. One at a time.
class FakeCudnn {
 public:
  FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;
  ~FakeCudnn();

  const device::cudnn::Api& api() const { return api_; }

  std::size_t version = 91900;
  std::vector<CudnnEngine> engines{{}};
  /// How a stream does the work of a run; at once unless set.
  std::function<void(void* stream, std::function<void()> work)> issue;
  /// Waits for all that was issued; needed before what it uses is destroyed.
  std::function<void()> settle;
  int plans_made = 0;
  int runs = 0;
  std::size_t alive() const { return descriptors_.size() + handles_.size(); }

 private:
  friend struct FakeCudnnCalls;

  CudnnDescriptor& find(device::cudnn::RawDescriptor raw);
  void set(CudnnDescriptor& descriptor, device::cudnn::Attribute attribute, CudnnValue value);
  void finalize(CudnnDescriptor& descriptor);
  void get_results(CudnnDescriptor& heuristics, std::int64_t most, std::int64_t& count,
                   void* values);
  void get(CudnnDescriptor& descriptor, device::cudnn::Attribute attribute, std::int64_t most,
           std::int64_t& count, void* values);
  void execute(device::cudnn::Handle handle, const CudnnDescriptor& plan,
               const CudnnDescriptor& pack);
  std::map<std::int64_t, std::uint32_t> numbers_of(const CudnnDescriptor& graph,
                                                   const std::map<std::int64_t, void*>& addresses);
  void before_destruction_of(const CudnnDescriptor& descriptor);

  device::cudnn::Api api_;
  std::map<void*, std::unique_ptr<CudnnDescriptor>> descriptors_;
  /// And their streams, once they have one.
  std::map<void*, std::optional<void*>> handles_;
  bool settled_ = true;
};

/// Content of the place where a product is added up.
enum class Sums { as_found, made_zero };
/// Runs a graph's operations on the memory that a variant pack names.
void interpret(const CudnnDescriptor& graph, const std::map<std::int64_t, void*>& addresses,
               Sums sums);
/// Throws std::logic_error.
[[noreturn]] void misuse(const std::string& what);

}  // namespace trireme::testing
