// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/embedding.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void EmbeddingForward::check() const {
  const Rows rows(out);
  TRIREME_EXPECT(are_runs(rows.count(), tokens) && Rows(table).width() == rows.width(),
                 text_of(*this));
}

void EmbeddingBackward::check() const {
  const Rows rows(d_out);
  TRIREME_EXPECT(are_runs(rows.count(), tokens) && Rows(d_table).width() == rows.width(),
                 text_of(*this));
}

void AddPositions::check() const {
  const Rows positions(table);
  TRIREME_EXPECT(seq > 0 && Rows(x).width() == positions.width() && first_position >= 0 &&
                     first_position + seq <= positions.count(),
                 text_of(*this));
}

void AddPositionsBackward::check() const {
  const Rows positions(d_table);
  TRIREME_EXPECT(seq > 0 && Rows(dx).width() == positions.width() && seq <= positions.count(),
                 text_of(*this));
}

}  // namespace trireme::device
