// SPDX-License-Identifier: Apache-2.0
#include "ownership/plans/ragged_buckets.hpp"

#include <utility>

namespace trireme::ownership {
namespace {

class Buckets {
 public:
  Buckets(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
    std::int64_t size = 0;
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      const auto& tensor = tensors[at];
      if (tensor.begins_bucket) {
        close_all();
        size = 0;
      }
      if (!tensor.is_matrix()) {
        if (tensor.held_elements > 0) elementwise_.push_back(at);
        const bool in_front = buckets_.empty() && matrices_.empty() &&
                              tensor.held_elements >= options.bucket_elements;
        if (in_front) close(elementwise_, ShardWriter::Bucket::last);
        continue;
      }
      matrices_.push_back(at);
      size += tensor.held_elements;
      const bool inside = at + 1 < tensors.size() && tensors[at + 1].joined;
      if (size >= options.bucket_elements && !inside) {
        close(matrices_, ShardWriter::Bucket::ragged);
        size = 0;
      }
    }
    close_all();
  }

  std::vector<RaggedBucket> take() && { return std::move(buckets_); }

 private:
  void close(std::vector<std::size_t>& tensors, ShardWriter::Bucket kind) {
    if (!tensors.empty()) buckets_.push_back({kind, std::move(tensors)});
    tensors.clear();
  }
  void close_all() {
    close(matrices_, ShardWriter::Bucket::ragged);
    close(elementwise_, ShardWriter::Bucket::last);
  }

  std::vector<std::size_t> matrices_;
  std::vector<std::size_t> elementwise_;
  std::vector<RaggedBucket> buckets_;
};

}  // namespace

std::vector<RaggedBucket> ragged_buckets(std::span<const OwnedTensor> tensors,
                                         const PlanOptions& options) {
  return Buckets(tensors, options).take();
}

}  // namespace trireme::ownership
