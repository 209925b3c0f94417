// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::parallel> parallel{.concern = Concern::layout};

constexpr Key parallel_rows[] = {
    parallel.key<&ParallelOptions::tensor>(
        "1", {.range = counts_from(1), .auto_rule = chosen_rule},
        "Tensor-parallel degree: over how many ranks each matrix is split. Keep it inside a node."),
    parallel.key<&ParallelOptions::context>(
        "1", {.range = counts_from(1)},
        "Context-parallel degree: over how many ranks the tokens of each sequence are divided, two "
        "chunks a rank. Attention gathers the keys and values of all. Keep it inside a node."),
    parallel.key<&ParallelOptions::pipeline>(
        "1", {.range = counts_from(1), .auto_rule = chosen_rule},
        "Pipeline-parallel degree: into how many stages the layers are divided."),
    parallel.key<&ParallelOptions::data>(
        "auto",
        {.range = counts_from(1), .auto_rule = "world size / (tensor x context x pipeline)"},
        "Data-parallel degree: how many replicas share the global batch."),
    parallel.key<&ParallelOptions::sequence>(
        "false", {.auto_rule = chosen_rule},
        "Sequence parallel: the ranks of a tensor-parallel group divide activations between matrix "
        "products along the sequence, too."),
    parallel.key<&ParallelOptions::schedule>(
        "1f1b", {.auto_rule = chosen_rule},
        "Order of forward and backward over the stages. All give the same numbers; they differ in "
        "idle time and memory. zb-h1, zb-h2 and zb-v compute gradients of weights later than those "
        "of activations, where a stage would be idle; zb-h2 holds the activations of twice as many "
        "micro-batches."),
    parallel.key<&ParallelOptions::virtual_stages>(
        "1", {.range = counts_from(1), .auto_rule = chosen_rule},
        "Pieces of the model that each stage holds. More than 1 needs schedule interleaved, which "
        "needs at least 2, or zb-v, which needs 2."),
    parallel.key<&ParallelOptions::stage_layers>(
        "", {.unit = "layers", .range = counts_from(0)},
        "Layers of each stage, first to last (with virtual stages: of each piece in the order of "
        "the model). Empty: so that no stage computes much more than another, the head counted as "
        "the layers that take as many operations."),
    parallel.key<&ParallelOptions::zero_level>(
        "0", {.range = between(0, 3), .auto_rule = chosen_rule},
        "What data-parallel ranks divide among themselves. 0: nothing; 1: master weights and "
        "optimizer state; 2: gradients, too, which are reduced behind each micro-batch, and add up "
        "in another order than at the other levels; 3: weights, too, which each unit (table, "
        "layer, head) gathers when a pass reads them, and with one stage gradients, where a unit "
        "takes all micro-batches before the next, whose activations it holds."),
    parallel.key<&ParallelOptions::bucket_bytes>(
        "25MiB", {.type = Type::bytes, .unit = "bytes", .range = between(4096, 17179869184)},
        "Bucket of gradients: how many bytes of them are reduced at a time, while backward goes "
        "on."),
};

}  // namespace

std::span<const Key> parallel_keys() {
  return parallel_rows;
}

}  // namespace trireme::schema
