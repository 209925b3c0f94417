// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

namespace trireme::schema {

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

Key adamw_matrices() {
  return {.section = "optimizer",
          .name = "adamw_matrices",
          .type = Type::texts,
          .concern = Concern::training,
          .documentation =
              "Names of matrices that stay with AdamW beside muon, shampoo and soap, * for any "
              "characters: layers.0.*, *.attention.output.weight. Of q, k, v and of gate, up all "
              "or none."};
}

Key per_head() {
  return {.section = "optimizer",
          .name = "per_head",
          .type = Type::flag,
          .concern = Concern::training,
          .default_text = "false",
          .documentation =
              "Whether each head of q, k and v is a matrix of its own (muon), instead of all heads "
              "together."};
}

Key group_bytes() {
  return {.section = "optimizer",
          .name = "group_bytes",
          .type = Type::bytes,
          .concern = Concern::layout,
          .default_text = "256MiB",
          .range = at_least(1),
          .documentation =
              "Largest memory of one tensor-parallel rank's matrices in one exchange (muon, "
              "shampoo, soap), at 4 bytes an element; a larger matrix goes alone. Up to three "
              "exchanges are under way."};
}

/// Key of the assignment of matrices of muon, shampoo and soap.
Key assignment() {
  return {
      .section = "optimizer",
      .name = "assignment",
      .type = Type::choice,
      .concern = Concern::layout,
      .default_text = "auto",
      .choices = {"padded", "contiguous", "shared"},
      .auto_rule = "what is predicted to add least to a step; the log says why",
      .documentation =
          "Which data-parallel rank owns which matrix (muon, shampoo, soap at parallel.zero_level "
          "1; at 0 `shared` alone has an effect). `padded`: matrices are placed in equal padded "
          "parts of each bucket, the longest work first; collectives stay those of ZeRO. "
          "`contiguous`: each rank has one part of each bucket, as long as its matrices are and "
          "without padding, in smaller buckets that hide behind backward. `shared`: the sequence "
          "of all matrices is cut where a rank has its share of the work, and the ranks on both "
          "sides of a cut compute its matrix together; with tensor parallelism matrices lie as "
          "with "
          "`contiguous`, and tensor-parallel ranks share those without which some of them would be "
          "idle (muon; on CPUs alone)."};
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

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
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
          "norms and biases."),
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
      adamw_matrices(),
      per_head(),
      assignment(),
      group_bytes(),
  };
}

}  // namespace trireme::schema
