// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/timed.hpp"

#include "pipeline.hpp"

namespace trireme::engine {

using device::Tensor;

namespace {

/// Buffers of a ring whose content is consumed by one action: one in use, one under way.
constexpr int double_buffer = 2;

/// Tags identify the receiving chunk and the direction; messages of one tag match by order.
int forward_tag(int receiving_chunk) {
  return 2 * receiving_chunk;
}
int backward_tag(int receiving_chunk) {
  return 2 * receiving_chunk + 1;
}

}  // namespace

ChunkMessages::ChunkMessages(comm::ProcessGroup& pipeline, layout::ChunkPlace place,
                             const Shape& shape, const Needs& needs, device::Arena& arena)
    : pipeline_(pipeline),
      before_(layout::previous_chunk(place, pipeline.size())),
      after_(layout::next_chunk(place, pipeline.size(), needs.virtual_stages)),
      forward_in_tag_(forward_tag(place.virtual_stage)),
      forward_out_tag_(forward_tag(after_.virtual_stage)),
      backward_in_tag_(backward_tag(place.virtual_stage)),
      backward_out_tag_(backward_tag(before_.virtual_stage)) {
  // An input stays until its backward, and one more may arrive meanwhile.
  if (!is_first()) make_ring(inputs_, needs.held + 1, shape, arena);
  if (!is_last()) make_ring(outputs_, double_buffer, shape, arena);
  if (!needs.backward) return;
  if (!is_last()) make_ring(output_gradients_, double_buffer, shape, arena);
  if (!is_first()) make_ring(input_gradients_, double_buffer, shape, arena);
}

void ChunkMessages::make_ring(Ring& ring, int count, const Shape& shape, device::Arena& arena) {
  for (int index = 0; index < count; ++index) {
    ring.buffers.push_back(arena.allocate(shape.dtype, {shape.rows, shape.width}));
  }
  ring.works.resize(ring.buffers.size());
}

void ChunkMessages::expect(Ring& ring, int micro_batch, layout::ChunkPlace from, int tag) {
  if (ring.buffers.empty() || micro_batch < ring.posted) return;
  const auto place = ring.place(micro_batch);
  ring.works[place] = pipeline_.start_receive(ring.buffers[place], from.stage, tag);
  ring.posted = micro_batch + 1;
}

void ChunkMessages::expect_input(int micro_batch) {
  expect(inputs_, micro_batch, before_, forward_in_tag_);
}

void ChunkMessages::expect_output_gradient(int micro_batch) {
  expect(output_gradients_, micro_batch, after_, backward_in_tag_);
}

Tensor ChunkMessages::take(Ring& ring, int micro_batch, device::Stopwatch& waiting) {
  if (ring.buffers.empty()) return {};
  const auto place = ring.place(micro_batch);
  device::Timed timed(&waiting, telemetry::SpanKind::bubble);
  ring.works[place].wait_on_stream();
  timed.end();
  return ring.buffers[place];
}

Tensor ChunkMessages::input(int micro_batch, device::Stopwatch& waiting) {
  return take(inputs_, micro_batch, waiting);
}

Tensor ChunkMessages::output_gradient(int micro_batch, device::Stopwatch& waiting) {
  return take(output_gradients_, micro_batch, waiting);
}

Tensor ChunkMessages::kept_input(int micro_batch) const {
  return inputs_.buffers.empty() ? Tensor{} : inputs_.buffers[inputs_.place(micro_batch)];
}

Tensor ChunkMessages::free_buffer(Ring& ring, int micro_batch) {
  if (ring.buffers.empty()) return {};
  const auto place = ring.place(micro_batch);
  ring.works[place].wait_on_stream();
  return ring.buffers[place];
}

Tensor ChunkMessages::output_buffer(int micro_batch) {
  return free_buffer(outputs_, micro_batch);
}

Tensor ChunkMessages::input_gradient_buffer(int micro_batch) {
  return free_buffer(input_gradients_, micro_batch);
}

void ChunkMessages::send_output(int micro_batch) {
  if (outputs_.buffers.empty()) return;
  const auto place = outputs_.place(micro_batch);
  outputs_.works[place] =
      pipeline_.start_send(outputs_.buffers[place], after_.stage, forward_out_tag_);
}

void ChunkMessages::send_input_gradient(int micro_batch) {
  if (input_gradients_.buffers.empty()) return;
  const auto place = input_gradients_.place(micro_batch);
  input_gradients_.works[place] =
      pipeline_.start_send(input_gradients_.buffers[place], before_.stage, backward_out_tag_);
}

void ChunkMessages::poll() {
  for (auto* ring : {&inputs_, &outputs_, &output_gradients_, &input_gradients_}) {
    for (auto& work : ring->works) work.poll();
  }
}

void ChunkMessages::finish() {
  for (auto* ring : {&inputs_, &outputs_, &output_gradients_, &input_gradients_}) {
    for (auto& work : ring->works) work.wait_on_stream();
    ring->posted = 0;
  }
}

}  // namespace trireme::engine
