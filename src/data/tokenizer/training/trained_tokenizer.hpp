// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer_training.hpp"

#include "data/tokenizer/training/bpe_trainer.hpp"

namespace trireme::data {

/// The tokenizer that the options describe, with what the trainer has learned so far.
Tokenizer make_tokenizer(const TrainingOptions& options, const BpeTrainer& trainer);

}  // namespace trireme::data
