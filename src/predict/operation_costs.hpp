// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/time.hpp"
#include "trireme/predict/workload.hpp"

/// Times of single operations of one rank. Private to the room.
namespace trireme::predict {

/// y [m, n] = x [m, k] w [k, n].
struct Product {
  double m = 0;
  double n = 0;
  double k = 0;
};

/// Attention of one micro-batch with a rank's heads.
struct Attention {
  double rows = 0;  ///< of all sequences
  double keys = 0;  ///< that one row could see without the mask
  double query_width = 0;
  double kv_width = 0;
  double heads = 0;
  bool fused = true;
};

/// An operation takes the longer of its FLOPs at the rate of its shape and its bytes at the
/// memory's rate. The gap between operations is the host's (segment.hpp).
class OperationCosts {
 public:
  /// `node_share`: part of a CPU node's rates that a running rank has; 1 for GPUs.
  OperationCosts(const Machine& machine, Precision precision, double node_share);

  Time product(const Product& product, Precision precision) const;
  /// The same with the sum added to what is there, in fp32: gradients of weights.
  Time accumulated_product(const Product& product, Precision precision) const;
  Time attention(const Attention& attention) const;
  Time attention_backward(const Attention& attention) const;
  /// Reads and writes of so many bytes.
  Time pass(double bytes) const;
  /// FLOPs of large products, and of decompositions of matrices into eigenvectors.
  Time flops(double count) const;
  Time decomposition(double count) const;

  double element_bytes() const { return element_bytes_; }
  /// FLOP/s of a product.
  double rate(const Product& product, Precision precision) const;

 private:
  double peak(Precision precision) const;
  /// Part of the time in which tiles compute what is asked for.
  double tile_share(const Product& product) const;
  /// The formula's rate, without what was measured.
  double formula_rate(const Product& product, Precision precision) const;
  double measured_factor(const Product& product, Precision precision) const;
  Time timed_product(const Product& product, Precision precision, double result_bytes) const;
  Time attention_time(const Attention& attention, double products, double score_passes) const;

  const Machine& machine_;
  Precision precision_;
  double node_share_;
  double element_bytes_;
};

}  // namespace trireme::predict
