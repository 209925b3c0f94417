// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::numerics> numerics{.concern = Concern::layout};

constexpr Key numerics_rows[] = {
    numerics.key<&NumericsOptions::precision>(
        "fp32", {.concern = Concern::training},
        "Precision of weights and activations in layers. Master weights, optimizer state, gradient "
        "sums, softmax, statistics of norms and the loss are fp32 in all. `fp8` is `bf16`, but "
        "layers' matrix products in forward read copies in e4m3 (training and evaluation; "
        "generation computes in bf16)."),
    numerics.key<&NumericsOptions::backend>(
        "auto",
        "What runs the kernels. `auto` is `cpu`. `cuda` computes on one GPU a rank, the nearest to "
        "its cores; ranks share GPUs where there are fewer. `reference` is plain loops, the oracle "
        "of the others."),
    numerics.key<&NumericsOptions::attention>(
        "auto",
        "What computes attention on GPUs. `auto` is cuDNN where a node has it and it takes the "
        "call (bf16, no dropout, heads whose width is a multiple of 8, up to 128 or on Hopper "
        "256), else own kernels, several times slower, for heads of up to 128; `cudnn` refuses to "
        "start without it."),
    numerics.key<&NumericsOptions::deterministic>(
        "false", {.concern = Concern::training},
        "Whether the number of threads, too, may change no bit. On CPUs, two runs of one layout on "
        "as many threads are equal anyhow. On GPUs: products are computed as cuBLASLt's heuristics "
        "say, and none is chosen by timing; cuDNN's attention adds in one order, without which the "
        "last bits of two runs differ."),
    numerics.key<&NumericsOptions::stochastic_rounding>(
        "false", {.concern = Concern::training},
        "Whether bf16 parameters are rounded from their fp32 masters at random, up with the "
        "probability of what is cut off, so that what an update changes shows in their mean "
        "however small it is; else to the nearest. The same in every layout and after a resume. "
        "Not with precision fp32."),
    numerics.key<&NumericsOptions::cuda_graphs>(
        "false",
        "Whether forward and backward of a micro-batch are issued to a GPU as CUDA graphs, which "
        "are recorded in the first steps, instead of kernel by kernel: as one, or with tensor "
        "parallelism as one between any two collectives, and at ZeRO level 3 as one for each unit. "
        "Changes no number. Without effect on CPUs."),
    numerics.key<&NumericsOptions::threads>(
        "auto",
        {.unit = "threads",
         .range = between(1, 4096),
         .auto_rule = "OMP_NUM_THREADS, else the cores that the rank is bound to"},
        "Compute threads of a rank on CPUs."),
    numerics.key<&NumericsOptions::peak_flops>(
        "auto",
        {.concern = Concern::running,
         .unit = "FLOP/s",
         .range = more_than(0),
         .auto_rule = "the data sheet of known GPUs, else the fastest product, measured once for "
                      "such ranks and kept"},
        "What one rank could compute at best: MFU (model FLOPs utilisation) is measured against "
        "it."),
};

}  // namespace

std::span<const Key> numerics_keys() {
  return numerics_rows;
}

}  // namespace trireme::schema
