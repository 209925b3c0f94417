#pragma once

#include <string>

namespace trireme::bench {

/// Times each kernel whose name holds `only` on the first card, in rows of JSON on stdout: first
/// the ceilings ("copy", and a product of random numbers of each type), then kernels with their
/// share of the ceiling that bounds them. An exit code; without a card 77 with the words that mark
/// a skip.
int measure_on_card(const std::string& only);

}  // namespace trireme::bench
