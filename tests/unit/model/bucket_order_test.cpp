// SPDX-License-Identifier: Apache-2.0
#include "model/bucket_order.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace trireme;
using model::bucket_class;
using model::BucketClass;

TEST_CASE("a bucket's class is by what its gradients wait for, then by who updates its matrices") {
  const auto kind = [](bool owned, bool deferred, bool tied) {
    model::FusedParameter fused;
    fused.owned = owned;
    fused.deferred = deferred;
    fused.tied = tied;
    return bucket_class(fused);
  };
  CHECK(kind(true, false, false) == BucketClass::owned);
  CHECK(kind(false, false, false) == BucketClass::early);
  CHECK(kind(true, true, false) == BucketClass::deferred_owned);
  CHECK(kind(false, true, false) == BucketClass::deferred);
  CHECK(kind(false, true, true) == BucketClass::tied);
  CHECK(std::is_sorted(std::begin(model::bucket_classes), std::end(model::bucket_classes)));
}

TEST_CASE("a bucket that ends with its unit is a block of a table, and of nothing else") {
  auto config = tests::qwen3_06b();
  config.num_hidden_layers = 2;
  config.tie_word_embeddings = false;
  constexpr std::int64_t elements = 1 << 20;
  const model::StageParameters stage(config, {layout::Mesh::of(1, 3, 1), base::Rank{0}, {{0, 2}}},
                                     elements, {}, model::BucketBorders::units);
  const auto& flat = stage.flat();
  std::int64_t end = 0;
  for (const auto& bucket : flat.buckets) {
    CHECK(bucket.begin == end);
    CHECK(bucket.size() % (3 * model::parameter_alignment) == 0);
    end = bucket.end;
  }
  CHECK(end == flat.size);
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto& fused = stage.fused_parameters()[index];
    const auto own = flat.buckets_of_tensor(index);
    if (fused.place.kind == model::Place::Kind::layer) {
      CHECK(own.size() == 1);
      continue;
    }
    CHECK(own.size() == (fused.columns == 0 ? 1 : fused.element_count() / elements));
    for (auto bucket = own.begin; bucket < own.end; ++bucket) {
      CHECK(flat.buckets[static_cast<std::size_t>(bucket)].size() < 2 * elements + elements / 2);
    }
  }
}

TEST_CASE("buckets of a stage lie in the order of their classes") {
  auto config = tests::qwen3_06b();
  config.num_hidden_layers = 4;
  for (const int tensor : {1, 2}) {
    const auto mesh = layout::Mesh::of(2, 2, tensor);
    const model::StageParameters stage(config, {mesh, base::Rank{0}, {{0, 2}}, {}}, 1 << 20,
                                       {model::muon_cost, {}, {}});
    std::set<BucketClass> seen;
    auto last = BucketClass::owned;
    for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
      const auto kind = bucket_class(stage.fused_parameters()[index]);
      CHECK(kind >= last);
      last = kind;
      seen.insert(kind);
      const auto buckets = stage.flat().buckets_of_tensor(index);
      for (auto bucket = buckets.begin; bucket < buckets.end; ++bucket) {
        const auto number = static_cast<std::size_t>(bucket);
        CHECK(stage.is_owned(number) == has_owners(kind));
        CHECK((number >= stage.first_tied_bucket()) == (kind == BucketClass::tied));
      }
    }
    // Tensor-parallel ranks have copies of every norm.
    const auto norms = tensor == 1 ? BucketClass::early : BucketClass::deferred;
    CHECK(seen == std::set{BucketClass::owned, norms, BucketClass::tied});
  }
}
