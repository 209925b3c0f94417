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
  key.auto_rule = "micro_batch x data-parallel degree";
  return key;
}

Key activation_checkpointing() {
  return {.section = "train",
          .name = "activation_checkpointing",
          .type = Type::choice,
          .concern = Concern::layout,
          .default_text = "none",
          .choices = {"none", "selective", "full"},
          .documentation =
              "What is computed again in backward instead of kept. "
              "`selective`: attention; `full`: each layer from its input. "
              "Numbers stay the same."};
}

}  // namespace

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
                    "Held-out batches of one evaluation; 0 is all there are."),
      train_integer(
          "replica_check", "0", "steps", counts_from(0), Concern::running,
          "Steps between comparisons of the parameters' bits on all data-parallel replicas; "
          "with it, each checkpoint is compared before it is saved. Where they differ, the run "
          "names rank and tensor and goes back to its newest checkpoint, once for each. 0 is "
          "never."),
  };
}

namespace {

Key warmup_steps() {
  return {.section = "optimizer",
          .name = "warmup_steps",
          .type = Type::integer,
          .concern = Concern::training,
          .default_text = "0",
          .unit = "steps",
          .range = counts_from(0),
          .documentation = "Steps over which the learning rate rises from 0."};
}

Key decay_steps() {
  auto decay = warmup_steps();
  decay.name = "decay_steps";
  decay.default_text = "auto";
  decay.auto_rule = "a tenth of train.steps, rounded up";
  decay.documentation =
      "Steps over which the learning rate falls to min_learning_rate at the end "
      "of the run, for curve wsd; cosine and linear fall from warm-up to end.";
  return decay;
}

Key skip_nonfinite() {
  return {.section = "optimizer",
          .name = "skip_nonfinite",
          .type = Type::integer,
          .concern = Concern::training,
          .default_text = "0",
          .unit = "steps",
          .range = counts_from(0),
          .documentation =
              "How many steps in a row may have a loss or a gradient norm that is not finite: they "
              "change no parameter and no moment, their samples are left behind, and metrics.jsonl "
              "has an event `skipped`. One more ends the run; with 0 the first does, after the "
              "state before it is saved."};
}

}  // namespace

Key momentum() {
  return {.section = "optimizer",
          .name = "momentum",
          .type = Type::real,
          .concern = Concern::training,
          .default_text = "auto",
          .range = from_0_below_1(),
          .auto_rule = "0.9 for sgd, 0.95 for muon",
          .documentation = "Decay of the velocity (sgd), or of the mean of gradients (muon)."};
}

Key nesterov() {
  return {.section = "optimizer",
          .name = "nesterov",
          .type = Type::flag,
          .concern = Concern::training,
          .default_text = "true",
          .documentation =
              "Whether muon takes gradient + momentum x (mean - gradient) instead of "
              "the mean (Nesterov's step)."};
}

Key newton_schulz_steps() {
  return {.section = "optimizer",
          .name = "ns_steps",
          .type = Type::integer,
          .concern = Concern::training,
          .default_text = "5",
          .unit = "steps",
          .range = between(1, 50),
          .documentation =
              "Newton-Schulz iterations of an update (muon). Products are of the "
              "type of numerics.precision: fp32, or bf16 with sums in fp32."};
}

Key root_every() {
  return {.section = "optimizer",
          .name = "root_every",
          .type = Type::integer,
          .concern = Concern::training,
          .default_text = "10",
          .unit = "updates",
          .range = at_least(1),
          .documentation =
              "Updates between two roots of the factors (shampoo; Shi et al. 2023, "
              "arXiv 2309.06497) or two renewals of their eigenvectors (soap; Vyas et "
              "al. 2024, arXiv 2409.11321)."};
}

Key max_side() {
  return {.section = "optimizer",
          .name = "max_side",
          .type = Type::integer,
          .concern = Concern::training,
          .default_text = "auto",
          .unit = "elements",
          .range = at_least(1),
          .auto_rule = "8192 with shampoo, 10000 with soap",
          .documentation =
              "Longest side of a matrix that has one factor. Longer ones are cut into equal blocks "
              "(shampoo; Anil et al. 2020, arXiv 2002.09018), or keep their own basis (soap)."};
}

Key adamw_learning_rate() {
  return {.section = "optimizer",
          .name = "adamw_learning_rate",
          .type = Type::real,
          .concern = Concern::training,
          .default_text = "auto",
          .range = at_least(0),
          .auto_rule = "learning_rate",
          .documentation =
              "Highest learning rate of what AdamW updates beside a rule for matrices "
              "(muon, shampoo, soap); its curve is that of learning_rate, scaled."};
}

Key optimizer_real(std::string_view name, std::string_view default_text, const Range& range,
                   std::string_view documentation) {
  return {.section = "optimizer",
          .name = name,
          .type = Type::real,
          .concern = Concern::training,
          .default_text = default_text,
          .range = range,
          .documentation = documentation};
}

Key optimizer_choice(std::string_view name, std::string_view default_text,
                     std::vector<std::string_view> choices, std::string_view documentation) {
  return {.section = "optimizer",
          .name = name,
          .type = Type::choice,
          .concern = Concern::training,
          .default_text = default_text,
          .choices = std::move(choices),
          .documentation = documentation};
}

std::vector<Key> optimizer_keys() {
  const auto& real = optimizer_real;
  const auto& choice = optimizer_choice;
  return {
      choice(
          "name", "adamw", {"adamw", "sgd", "muon", "shampoo", "soap"},
          "Update rule. `sgd` is stochastic gradient descent with momentum. `muon` (Jordan et "
          "al. 2024) orthogonalises the momentum of each matrix of a layer, q, k, v and gate, up "
          "apart; `shampoo` (Gupta et al. 2018) multiplies the first moment by inverse "
          "fourth roots from both sides and takes the length of Adam's update; `soap` (Vyas et al. "
          "2024) is Adam in the "
          "eigenvectors of Shampoo's factors. With these three AdamW updates embedding, head, "
          "norms and biases. shampoo and soap run on CPUs alone."),
      real("learning_rate", "0.0003", at_least(0), "Learning rate at its highest."),
      real("min_learning_rate", "0", at_least(0),
           "Learning rate at the end of the decay. At most learning_rate."),
      choice("curve", "cosine", {"constant", "cosine", "linear", "wsd"},
             "How the learning rate falls after warm-up. `wsd`: stays, then falls linearly at "
             "the end (warm-up, stable, decay)."),
      warmup_steps(),
      decay_steps(),
      real("beta1", "0.9", from_0_below_1(), "Decay of the first moment (adamw, shampoo, soap)."),
      real("beta2", "0.95", from_0_below_1(),
           "Decay of the second moment (adamw, shampoo, soap), and of the factors of shampoo and "
           "soap."),
      real("eps", "1e-8", more_than(0),
           "Term beside the root of the second moment (adamw, shampoo, soap)."),
      momentum(),
      real("weight_decay", "0.1", at_least(0),
           "Decoupled weight decay, on matrices only (not on norms, biases)."),
      real("clip_norm", "1", at_least(0),
           "Largest global norm of gradients, larger ones are scaled down; 0 is off."),
      skip_nonfinite(),
      nesterov(),
      newton_schulz_steps(),
      choice("ns_coefficients", "simple", {"simple", "quintic", "polar_express"},
             "Coefficients of the Newton-Schulz steps (muon): one triple for all (Jordan et al. "
             "2024), five, or eight (Amsel et al. 2025, arXiv 2505.16932); the last one repeats."),
      choice("scale", "match_rms_adamw", {"original", "match_rms_adamw", "unit_rms_norm"},
             "Factor on the update of a matrix [out, in] (muon): sqrt(max(1, out / in)); "
             "0.2 sqrt(max(out, in)), with which AdamW's learning rate and decay carry over (Liu "
             "et al. 2025, arXiv 2502.16982); sqrt(out / in)."),
      root_every(),
      real("epsilon", "1e-5", more_than(0),
           "Term added to a factor's eigenvalues before the root, as a part of the largest "
           "(shampoo; Anil et al. 2020, arXiv 2002.09018)."),
      max_side(),
      adamw_learning_rate(),
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
           .auto_rule = "the data sheet of known GPUs, else the fastest product measured at start",
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
