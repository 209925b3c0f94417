// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::optimizer> optimizer{.concern = Concern::training};

constexpr Key optimizer_rows[] = {
    optimizer.key<&OptimizerOptions::name>(
        "adamw",
        "Update rule. `sgd` is stochastic gradient descent with momentum. `muon` (Jordan et al. "
        "2024) orthogonalises the momentum of each matrix of a layer, q, k, v and gate, up apart; "
        "`shampoo` (Gupta et al. 2018) multiplies the first moment by inverse fourth roots from "
        "both sides and takes the length of Adam's update; `soap` (Vyas et al. 2024) is Adam in "
        "the eigenvectors of Shampoo's factors. With these three AdamW updates embedding, head, "
        "norms and biases."),
    optimizer.key<&OptimizerOptions::learning_rate>("0.0003", {.range = at_least(0)},
                                                    "Learning rate at its highest."),
    optimizer.key<&OptimizerOptions::min_learning_rate>(
        "0", {.range = at_least(0)},
        "Learning rate at the end of the decay. At most learning_rate."),
    optimizer.key<&OptimizerOptions::curve>(
        "cosine",
        "How the learning rate falls after warm-up. `wsd`: stays, then falls linearly at the end "
        "(warm-up, stable, decay)."),
    optimizer.key<&OptimizerOptions::warmup_steps>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "Steps over which the learning rate rises from 0."),
    optimizer.key<&OptimizerOptions::decay_steps>(
        "auto",
        {.unit = "steps",
         .range = counts_from(0),
         .auto_rule = "a tenth of train.steps, rounded up"},
        "Steps over which the learning rate falls to min_learning_rate at the end of the run, for "
        "curve wsd; cosine and linear fall from warm-up to end."),
    optimizer.key<&OptimizerOptions::beta1>("0.9", {.range = from_0_below_1()},
                                            "Decay of the first moment (adamw, shampoo, soap)."),
    optimizer.key<&OptimizerOptions::beta2>("0.95", {.range = from_0_below_1()},
                                            "Decay of the second moment (adamw, shampoo, soap), "
                                            "and of the factors of shampoo and soap."),
    optimizer.key<&OptimizerOptions::eps>(
        "1e-8", {.range = more_than(0)},
        "Term beside the root of the second moment (adamw, shampoo, soap)."),
    optimizer.key<&OptimizerOptions::momentum>(
        "auto", {.range = from_0_below_1(), .auto_rule = "0.9 for sgd, 0.95 for muon"},
        "Decay of the velocity (sgd), or of the mean of gradients (muon)."),
    optimizer.key<&OptimizerOptions::weight_decay>(
        "0.1", {.range = at_least(0)},
        "Decoupled weight decay, on matrices only (not on norms, biases)."),
    optimizer.key<&OptimizerOptions::clip_norm>(
        "1", {.range = at_least(0)},
        "Largest global norm of gradients, larger ones are scaled down; 0 is off."),
    optimizer.key<&OptimizerOptions::skip_nonfinite>(
        "0", {.unit = "steps", .range = counts_from(0)},
        "How many steps in a row may have a loss or a gradient norm that is not finite: they "
        "change no parameter and no moment, their samples are left behind, and metrics.jsonl has "
        "an event `skipped`. One more ends the run; with 0 the first does, after the state before "
        "it is saved."),
    optimizer.key<&OptimizerOptions::nesterov>("true",
                                               "Whether muon takes gradient + momentum x (mean - "
                                               "gradient) instead of the mean (Nesterov's step)."),
    optimizer.key<&OptimizerOptions::ns_steps>(
        "5", {.unit = "steps", .range = between(1, 50)},
        "Newton-Schulz iterations of an update (muon). Products are of the type of "
        "numerics.precision: fp32, or bf16 with sums in fp32."),
    optimizer.key<&OptimizerOptions::ns_coefficients>(
        "simple",
        "Coefficients of the Newton-Schulz steps (muon): one triple for all (Jordan et al. 2024), "
        "five, or eight (Amsel et al. 2025, arXiv 2505.16932); the last one repeats."),
    optimizer.key<&OptimizerOptions::scale>(
        "match_rms_adamw",
        "Factor on the update of a matrix [out, in] (muon): sqrt(max(1, out / in)); 0.2 "
        "sqrt(max(out, in)), with which AdamW's learning rate and decay carry over (Liu et al. "
        "2025, arXiv 2502.16982); sqrt(out / in)."),
    optimizer.key<&OptimizerOptions::root_every>(
        "10", {.unit = "updates", .range = counts_from(1)},
        "Updates between two roots of the factors (shampoo; Shi et al. 2023, arXiv 2309.06497) or "
        "two renewals of their eigenvectors (soap; Vyas et al. 2024, arXiv 2409.11321); each "
        "matrix has a turn of its own."),
    optimizer.key<&OptimizerOptions::epsilon>(
        "1e-5", {.range = more_than(0)},
        "Term added to a factor's eigenvalues before the root, as a part of the largest (shampoo; "
        "Anil et al. 2020, arXiv 2002.09018)."),
    optimizer.key<&OptimizerOptions::max_side>(
        "auto",
        {.unit = "elements",
         .range = at_least(1),
         .auto_rule = "8192 with shampoo, 10000 with soap"},
        "Longest side of a matrix that has one factor. Longer ones are cut into equal blocks "
        "(shampoo; Anil et al. 2020, arXiv 2002.09018), or keep their own basis (soap)."),
    optimizer.key<&OptimizerOptions::adamw_learning_rate>(
        "auto", {.range = at_least(0), .auto_rule = "learning_rate"},
        "Highest learning rate of what AdamW updates beside a rule for matrices (muon, shampoo, "
        "soap); its curve is that of learning_rate, scaled."),
    optimizer.key<&OptimizerOptions::adamw_matrices>(
        "",
        "Names of matrices that stay with AdamW beside muon, shampoo and soap, * for any "
        "characters: layers.0.*, *.attention.output.weight. Of q, k, v and of gate, up all or "
        "none."),
    optimizer.key<&OptimizerOptions::per_head>("false",
                                               "Whether each head of q, k and v is a matrix of its "
                                               "own (muon), instead of all heads together."),
    optimizer.key<&OptimizerOptions::assignment>(
        "auto",
        {.concern = Concern::layout,
         .auto_rule = "what is predicted to add least to a step; the log says why"},
        "Which data-parallel rank owns which matrix (muon, shampoo, soap from parallel.zero_level "
        "1 on; at 0 `shared` alone has an effect). `padded`: matrices are placed in equal padded "
        "parts of each bucket, the longest work first; collectives stay those of ZeRO; not at "
        "levels 2 and 3, whose buckets have one layer each. `contiguous`: each rank has one part "
        "of each "
        "bucket, as long as its matrices are and without padding, in smaller buckets that hide "
        "behind backward. `shared`: the sequence of all matrices is cut where a rank has its share "
        "of the work, and the ranks on both sides of a cut compute its matrix together; with "
        "tensor parallelism matrices lie as with `contiguous`, and tensor-parallel ranks share "
        "those without which some of them would be idle (muon; on CPUs alone)."),
    optimizer.key<&OptimizerOptions::group_bytes>(
        "256MiB", {.concern = Concern::layout, .type = Type::bytes, .range = at_least(1)},
        "Largest memory of one tensor-parallel rank's matrices in one exchange (muon, shampoo, "
        "soap), at 4 bytes an element; a larger matrix goes alone. Up to three exchanges are under "
        "way."),
};

}  // namespace

std::span<const Key> optimizer_keys() {
  return optimizer_rows;
}

}  // namespace trireme::schema
