// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

namespace trireme::schema {
namespace {

Key layout_integer(std::string_view name, std::string_view default_text, const Range& range,
                   std::string_view documentation) {
  return {.section = "parallel",
          .name = name,
          .type = Type::integer,
          .concern = Concern::layout,
          .default_text = default_text,
          .range = range,
          .documentation = documentation};
}

Key sequence() {
  return {.section = "parallel",
          .name = "sequence",
          .type = Type::flag,
          .concern = Concern::layout,
          .default_text = "false",
          .documentation =
              "Sequence parallel: the ranks of a tensor-parallel group divide "
              "activations between matrix products along the sequence, too."};
}

Key schedule() {
  return {.section = "parallel",
          .name = "schedule",
          .type = Type::choice,
          .concern = Concern::layout,
          .default_text = "1f1b",
          .choices = {"gpipe", "1f1b", "interleaved"},
          .documentation =
              "Order of forward and backward over the stages. All give the "
              "same numbers; they differ in idle time and memory."};
}

}  // namespace

std::vector<Key> parallel_keys() {
  auto tensor = layout_integer(
      "tensor", "1", counts_from(1),
      "Tensor-parallel degree: over how many ranks each matrix is split. Keep it inside a node.");
  auto pipeline =
      layout_integer("pipeline", "1", counts_from(1),
                     "Pipeline-parallel degree: into how many stages the layers are divided.");
  auto data = layout_integer("data", "auto", counts_from(1),
                             "Data-parallel degree: how many replicas share the global batch.");
  data.auto_rule = "world size / (tensor x pipeline)";
  auto virtual_stages =
      layout_integer("virtual_stages", "1", counts_from(1),
                     "Pieces of the model that each stage holds. More than 1 needs schedule "
                     "interleaved, which needs at least 2.");
  auto zero_level =
      layout_integer("zero_level", "0", between(0, 1),
                     "What data-parallel ranks divide among themselves. 0: nothing; 1: master "
                     "weights and optimizer state.");
  Key stage_layers{.section = "parallel",
                   .name = "stage_layers",
                   .type = Type::integers,
                   .concern = Concern::layout,
                   .unit = "layers",
                   .range = counts_from(0),
                   .documentation =
                       "Layers of each stage, first to last (with virtual stages: of "
                       "each piece in the order of the model). Empty: so that no stage computes "
                       "much more than another, the head counted as the layers that take as many "
                       "operations."};
  Key bucket{.section = "parallel",
             .name = "bucket_bytes",
             .type = Type::bytes,
             .concern = Concern::layout,
             .default_text = "25MiB",
             .unit = "bytes",
             .range = between(4096, 17179869184.0),
             .documentation =
                 "Bucket of gradients: how many bytes of them are reduced at a time, "
                 "while backward goes on."};
  return {tensor,         pipeline,     data,       sequence(), schedule(),
          virtual_stages, stage_layers, zero_level, bucket};
}

namespace {

std::vector<Key> deadline_keys() {
  Key timeout{.section = "comm",
              .name = "timeout",
              .type = Type::seconds,
              .default_text = "10min",
              .unit = "seconds",
              .range = between(0.1, 604800),
              .documentation =
                  "Deadline of every wait for other ranks. A wait that reaches it "
                  "ends the run with exit code 5 and names the ranks that did not "
                  "come."};
  Key start_timeout{.section = "comm",
                    .name = "start_timeout",
                    .type = Type::seconds,
                    .default_text = "5min",
                    .unit = "seconds",
                    .range = between(1, 604800),
                    .documentation =
                        "Deadline of MPI's own start and end (MPI_Init, communicators, first "
                        "connections, MPI_Finalize). One that is reached ends the run with exit "
                        "code 5 (after a finished run: with the run's own) and says which call "
                        "hangs, on which node, and which of its ranks are missing or stopped."};
  return {timeout, start_timeout};
}

}  // namespace

std::vector<Key> comm_keys() {
  auto keys = deadline_keys();
  Key backend{.section = "comm",
              .name = "backend",
              .type = Type::choice,
              .concern = Concern::layout,
              .default_text = "auto",
              .choices = {"auto", "mpi", "shared", "nccl", "staged"},
              .documentation =
                  "What carries collectives. On CPUs `auto` is shared memory inside a node and MPI "
                  "between nodes. On GPUs it is NCCL where every rank has a GPU and the same "
                  "NCCL, else `staged`: through the host and MPI, which the start says. `nccl` "
                  "refuses to go on without."};
  Key require_rdma{.section = "comm",
                   .name = "require_rdma",
                   .type = Type::choice,
                   .default_text = "auto",
                   .choices = {"auto", "true", "false"},
                   .documentation =
                       "What is refused of NCCL between nodes (exit code 4). `auto`: TCP, where a "
                       "node has an RDMA NIC whose port is up. `true`: whatever NCCL does not "
                       "show to be RDMA, and groups that are not NCCL's. `false`: nothing; it is "
                       "said and goes on."};
  Key register_buffers{
      .section = "comm",
      .name = "register_buffers",
      .type = Type::choice,
      .default_text = "buffers",
      .choices = {"none", "buffers", "windows"},
      .documentation =
          "What NCCL is told of memory that collectives and messages work in. "
          "`buffers`: its place, so that GPUs and network reach it without a "
          "copy (2.19). `windows`: NCCL allocates what collectives work in itself, "
          "and ranks of a node see each other's (2.27). `none`: nothing."};
  keys.insert(keys.end(), {backend, require_rdma, register_buffers});
  return keys;
}

}  // namespace trireme::schema
