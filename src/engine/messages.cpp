// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/timed.hpp"

#include "pipeline.hpp"

namespace trireme::engine {

using device::Tensor;

namespace {

/// Buffers of a ring that is sent from: one in use, one under way.
constexpr int double_buffer = 2;

/// Tags identify the receiving chunk and the direction; messages of one tag match by order.
int forward_tag(int receiving_chunk) {
  return 2 * receiving_chunk;
}
int backward_tag(int receiving_chunk) {
  return 2 * receiving_chunk + 1;
}

}  // namespace

ChunkMessages::ChunkMessages(comm::ProcessGroup& pipeline, const Places& places, const Shape& shape,
                             const layout::ChunkBuffers& needs, layout::Passes passes,
                             device::Arena& arena)
    : pipeline_(pipeline),
      before_(places.before),
      after_(places.after),
      forward_in_tag_(forward_tag(places.own.virtual_stage)),
      forward_out_tag_(forward_tag(after_.virtual_stage)),
      backward_in_tag_(backward_tag(places.own.virtual_stage)),
      backward_out_tag_(backward_tag(before_.virtual_stage)) {
  inputs_.is_local = input_gradients_.is_local = is_here(before_);
  outputs_.is_local = output_gradients_.is_local = is_here(after_);
  make_ring(inputs_, needs.inputs, shape, arena);
  if (!is_last() && !outputs_.is_local) make_ring(outputs_, double_buffer, shape, arena);
  make_ring(output_gradients_, needs.output_gradients, shape, arena);
  if (passes == layout::Passes::forward_alone || is_first() || input_gradients_.is_local) return;
  make_ring(input_gradients_, double_buffer, shape, arena);
}

void ChunkMessages::hand_over_to(ChunkMessages& next) {
  outputs_.buffers = next.inputs_.buffers;
  outputs_.works.resize(outputs_.buffers.size());
  next.input_gradients_.buffers = output_gradients_.buffers;
  next.input_gradients_.works.resize(output_gradients_.buffers.size());
}

void ChunkMessages::share_output_gradients(const ChunkMessages& other) {
  output_gradients_.buffers = other.output_gradients_.buffers;
  output_gradients_.works.resize(output_gradients_.buffers.size());
}

void ChunkMessages::make_ring(Ring& ring, int count, const Shape& shape, device::Arena& arena) {
  for (int index = 0; index < count; ++index) {
    ring.buffers.push_back(arena.allocate(shape.dtype, {shape.rows, shape.width}));
  }
  ring.works.resize(ring.buffers.size());
}

void ChunkMessages::expect(Ring& ring, int micro_batch, layout::ChunkPlace from, int tag) {
  if (ring.buffers.empty() || ring.is_local || micro_batch < ring.posted) return;
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

Tensor ChunkMessages::kept(const Ring& ring, int micro_batch) {
  return ring.buffers.empty() ? Tensor{} : ring.buffers[ring.place(micro_batch)];
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
  if (outputs_.buffers.empty() || outputs_.is_local) return;
  const auto place = outputs_.place(micro_batch);
  outputs_.works[place] =
      pipeline_.start_send(outputs_.buffers[place], after_.stage, forward_out_tag_);
}

void ChunkMessages::send_input_gradient(int micro_batch) {
  if (input_gradients_.buffers.empty() || input_gradients_.is_local) return;
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
