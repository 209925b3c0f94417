// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::train> train{.concern = Concern::running};

constexpr Key train_rows[] = {
    train.key<&TrainOptions::steps>(
        "1000", {.concern = Concern::training, .unit = "steps", .range = counts_from(1)},
        "Optimizer updates of the whole run, those before a resume included."),
    train.key<&TrainOptions::sequence_length>(
        "1024", {.concern = Concern::training, .unit = "tokens", .range = counts_from(1)},
        "Tokens of one training sequence."),
    train.key<&TrainOptions::document_mask>(
        "false", {.concern = Concern::training},
        "Whether documents that follow each other in a sequence attend to themselves alone: a "
        "token sees those before it back to where its document begins, as the index of the token "
        "files says. Positions go on through the sequence. On GPUs own kernels compute such "
        "attention."),
    train.key<&TrainOptions::micro_batch>("1",
                                          {.concern = Concern::layout,
                                           .unit = "sequences",
                                           .range = counts_from(1),
                                           .auto_rule = chosen_rule},
                                          "Sequences of one forward on one data-parallel rank."),
    train.key<&TrainOptions::global_batch>(
        "auto",
        {.concern = Concern::training,
         .unit = "sequences",
         .range = counts_from(1),
         .auto_rule =
             "the batch of the run that resumes; of a new one micro_batch x data-parallel degree"},
        "Sequences of one step over all ranks. A multiple of micro_batch times the data-parallel "
        "degree."),
    train.key<&TrainOptions::seed>("1234", {.concern = Concern::training, .range = at_least(0)},
                                   "Seed of initial weights and dropout."),
    train.key<&TrainOptions::activation_checkpointing>(
        "none",
        {.concern = Concern::layout,
         .auto_rule = "what costs least of all that fits into train.memory_limit, for each stage"},
        "Activations that backward computes again instead of reading what forward kept: `none`, or "
        "a set of `norms` (outputs of norms), `activation` (output of SwiGLU or GELU), `attention` "
        "(its output), `mlp` (its wide tensors; `activation` is among them) and `layer` (all but a "
        "layer's input). `norms,activation` frees about a third at the least cost. `layer:8`: in "
        "the first 8 layers of each stage. Numbers stay the same (GPT-2 on GPUs: but for last bits "
        "with `activation`)."),
    train.key<&TrainOptions::memory_limit>(
        "0",
        {.concern = Concern::layout, .type = Type::bytes, .unit = "bytes", .range = at_least(0)},
        "Memory that the arrays of a rank may take (the total that `trireme plan` shows), for "
        "activation_checkpointing = auto and for schedule zb-h2, which is refused if it does not "
        "fit. Leave room for what libraries take beside them."),
    train.key<&TrainOptions::log_every>(
        "1", {.unit = "steps", .range = counts_from(1)},
        "Steps between two log lines; metrics.jsonl has every step."),
    train.key<&TrainOptions::log_interval>(
        "10s", {.type = Type::seconds, .unit = "seconds", .range = at_least(0)},
        "Time between two lines about steps at least, where stderr is no terminal; 0: a line for "
        "each log step."),
    train.key<&TrainOptions::profile>(
        "",
        "Steps whose times each rank records in RUN/trace: `100..102`, or `100`; at most 100. "
        "Empty: none; `trireme profile` asks a run that goes on."),
    train.key<&TrainOptions::eval_every>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Steps between evaluations on data.validation; 0 is never."),
    train.key<&TrainOptions::eval_batches>(
        "16", {.unit = "global batches", .range = counts_from(0)},
        "Held-out batches of one evaluation; 0 is all there are: then each source of a blend is "
        "taken once and in whole, and weights count for the means alone, as `trireme eval` does."),
    train.key<&TrainOptions::sample_prompts>(
        "",
        "File of prompts that the run continues after each evaluation, as `trireme generate` "
        "would: one a line, or a JSON list of texts; at most 64. Empty: none. Needs "
        "`train.eval_every` and a tokenizer."),
    train.key<&TrainOptions::sample_tokens>("64", {.unit = "tokens", .range = between(1, 1024)},
                                            "New tokens of each continued prompt at most."),
    train.key<&TrainOptions::sample_temperature>(
        "0", {.range = between(0, 100)},
        "What the logits of continued prompts are divided by; 0: always the most likely token. The "
        "choice is by `train.seed`."),
    train.key<&TrainOptions::replica_check>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Steps between comparisons of the parameters' bits on all data-parallel replicas, and of "
        "those "
        "that are not cut on tensor-parallel ranks; with it, each checkpoint is compared before it "
        "is saved. Where they differ, the run names rank and "
        "tensor and goes back to its newest checkpoint, once for each. 0 is never."),
};

}  // namespace

std::span<const Key> train_keys() {
  return train_rows;
}

}  // namespace trireme::schema
