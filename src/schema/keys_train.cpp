// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

namespace trireme::schema {

namespace {

Key train_integer(std::string_view name, std::string_view default_text, std::string_view unit,
                  const Range& range, Concern concern, std::string_view documentation) {
  return {.section = "train",
          .name = name,
          .type = Type::integer,
          .concern = concern,
          .default_text = default_text,
          .unit = unit,
          .range = range,
          .documentation = documentation};
}

Key global_batch() {
  auto key = train_integer("global_batch", "auto", "sequences", counts_from(1), Concern::training,
                           "Sequences of one step over all ranks. A multiple of micro_batch "
                           "times the data-parallel degree.");
  key.auto_rule =
      "the batch of the run that resumes; of a new one micro_batch x data-parallel degree";
  return key;
}

Key activation_checkpointing() {
  return {.section = "train",
          .name = "activation_checkpointing",
          .type = Type::texts,
          .concern = Concern::layout,
          .default_text = "none",
          .auto_rule = "what costs least of all that fits into train.memory_limit, for each stage",
          .documentation =
              "Activations that backward computes again instead of reading what forward kept: "
              "`none`, or a set of `norms` (outputs of norms), `activation` (output of SwiGLU or "
              "GELU), `attention` (its output), `mlp` (its wide tensors; `activation` is among "
              "them) and `layer` (all but a layer's input). `norms,activation` frees about a third "
              "at the least cost. `layer:8`: in the first 8 layers of each stage. "
              "Numbers stay the same (GPT-2 on GPUs: but for last bits with `activation`)."};
}

Key memory_limit() {
  return {
      .section = "train",
      .name = "memory_limit",
      .type = Type::bytes,
      .concern = Concern::layout,
      .default_text = "0",
      .unit = "bytes",
      .range = at_least(0),
      .documentation =
          "Memory that the arrays of a rank may take (the total that `trireme plan` shows), for "
          "activation_checkpointing = auto. Leave room for what libraries take beside them."};
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Key> train_keys() {
  return {
      train_integer("steps", "1000", "steps", counts_from(1), Concern::training,
                    "Optimizer updates of the whole run, those before a resume included."),
      train_integer("sequence_length", "1024", "tokens", counts_from(1), Concern::training,
                    "Tokens of one training sequence."),
      train_integer("micro_batch", "1", "sequences", counts_from(1), Concern::layout,
                    "Sequences of one forward on one data-parallel rank."),
      global_batch(),
      train_integer("seed", "1234", "", at_least(0), Concern::training,
                    "Seed of initial weights and dropout."),
      activation_checkpointing(),
      memory_limit(),
      train_integer("log_every", "1", "steps", counts_from(1), Concern::running,
                    "Steps between two log lines; metrics.jsonl has every step."),
      {.section = "train",
       .name = "log_interval",
       .type = Type::seconds,
       .default_text = "10s",
       .unit = "seconds",
       .range = at_least(0),
       .documentation = "Time between two lines about steps at least, where stderr is no terminal; "
                        "0: a line for each log step."},
      {.section = "train",
       .name = "profile",
       .documentation =
           "Steps whose times each rank records in RUN/trace: `100..102`, or `100`; at "
           "most 100. Empty: none; `trireme profile` asks a run that goes on."},
      train_integer("eval_every", "0", "steps", counts_from(0), Concern::running,
                    "Steps between evaluations on data.validation; 0 is never."),
      train_integer("eval_batches", "16", "global batches", counts_from(0), Concern::running,
                    "Held-out batches of one evaluation; 0 is all there are: then each source of a "
                    "blend is taken once and in whole, and weights count for the means alone, as "
                    "`trireme eval` does."),
      {.section = "train",
       .name = "sample_prompts",
       .documentation =
           "File of prompts that the run continues after each evaluation, as `trireme generate` "
           "would: one a line, or a JSON list of texts; at most 64. Empty: none. Needs "
           "`train.eval_every` and a tokenizer."},
      train_integer("sample_tokens", "64", "tokens", between(1, 1024), Concern::running,
                    "New tokens of each continued prompt at most."),
      {.section = "train",
       .name = "sample_temperature",
       .type = Type::real,
       .default_text = "0",
       .range = between(0, 100),
       .documentation = "What the logits of continued prompts are divided by; 0: always the most "
                        "likely token. The choice is by `train.seed`."},
      train_integer(
          "replica_check", "0", "steps", counts_from(0), Concern::running,
          "Steps between comparisons of the parameters' bits on all data-parallel replicas, and of "
          "those that are not cut on tensor-parallel ranks; with it, each checkpoint is compared "
          "before it is saved. Where they differ, the run "
          "names rank and tensor and goes back to its newest checkpoint, once for each. 0 is "
          "never."),
  };
}

Key cuda_graphs_key() {
  return {
      .section = "numerics",
      .name = "cuda_graphs",
      .type = Type::flag,
      .concern = Concern::layout,
      .default_text = "false",
      .documentation =
          "Whether forward and backward of a micro-batch are issued to a GPU as CUDA graphs, "
          "which "
          "are recorded in the first steps, instead of kernel by kernel: as one, or with tensor "
          "parallelism as one between any two collectives. Changes no number. Without effect "
          "on CPUs."};
}

Key attention_key() {
  return {.section = "numerics",
          .name = "attention",
          .type = Type::choice,
          .concern = Concern::layout,
          .default_text = "auto",
          .choices = {"auto", "own", "cudnn"},
          .documentation =
              "What computes attention on GPUs. `auto` is cuDNN where a node has it and it "
              "takes the call (bf16, no dropout, heads whose width is a multiple of 8, up to 128 "
              "or on Hopper 256), else own kernels, several times slower, for heads of up to 128; "
              "`cudnn` refuses to start without it."};
}

Key deterministic_key() {
  return {.section = "numerics",
          .name = "deterministic",
          .type = Type::flag,
          .concern = Concern::training,
          .default_text = "false",
          .documentation =
              "Whether the number of threads, too, may change no bit. On CPUs, two "
              "runs of one layout on as many threads are equal anyhow. On GPUs: "
              "products are computed as cuBLASLt's heuristics say, and none is chosen "
              "by timing; cuDNN's attention adds in one order, without which the last bits of "
              "two runs differ."};
}

Key stochastic_rounding_key() {
  return {.section = "numerics",
          .name = "stochastic_rounding",
          .type = Type::flag,
          .concern = Concern::training,
          .default_text = "false",
          .documentation =
              "Whether bf16 parameters are rounded from their fp32 masters at random, up with the "
              "probability of what is cut off, so that what an update changes shows in their mean "
              "however small it is; else to the nearest. The same in every layout and after a "
              "resume. Not with precision fp32."};
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Key> numerics_keys() {
  Key precision{.section = "numerics",
                .name = "precision",
                .type = Type::choice,
                .concern = Concern::training,
                .default_text = "fp32",
                .choices = {"fp32", "bf16", "fp8"},
                .documentation =
                    "Precision of weights and activations in layers. Master weights, optimizer "
                    "state, gradient sums, softmax, statistics of norms and the loss are fp32 in "
                    "all. `fp8` is `bf16`, but layers' matrix products in forward read copies in "
                    "e4m3 (training and evaluation; generation computes in bf16)."};
  Key backend{.section = "numerics",
              .name = "backend",
              .type = Type::choice,
              .concern = Concern::layout,
              .default_text = "auto",
              .choices = {"auto", "reference", "cpu", "cuda"},
              .documentation =
                  "What runs the kernels. `auto` is `cpu`. `cuda` computes on one GPU a rank, the "
                  "nearest to its cores; ranks share GPUs where there are fewer. `reference` is "
                  "plain loops, the oracle of the others."};
  Key threads{.section = "numerics",
              .name = "threads",
              .type = Type::integer,
              .concern = Concern::layout,
              .default_text = "auto",
              .unit = "threads",
              .range = between(1, 4096),
              .auto_rule = "OMP_NUM_THREADS, else the cores that the rank is bound to",
              .documentation = "Compute threads of a rank on CPUs."};
  Key peak{.section = "numerics",
           .name = "peak_flops",
           .type = Type::real,
           .default_text = "auto",
           .unit = "FLOP/s",
           .range = more_than(0),
           .auto_rule =
               "the data sheet of known GPUs, else the fastest product, measured once for such "
               "ranks and kept",
           .documentation =
               "What one rank could compute at best: MFU (model FLOPs utilisation) "
               "is measured against it."};
  return {precision,
          backend,
          attention_key(),
          deterministic_key(),
          stochastic_rounding_key(),
          cuda_graphs_key(),
          threads,
          peak};
}

}  // namespace trireme::schema
