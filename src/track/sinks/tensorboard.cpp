// SPDX-License-Identifier: Apache-2.0
// Event files of TensorBoard: records of u64 length, masked CRC-32C of it, protobuf Event, masked
// CRC-32C of that (tensorflow/core/lib/io/record_writer, tensorflow/core/util/event.proto).
#include "trireme/base/checksum.hpp"
#include "trireme/base/format.hpp"

#include "sinks.hpp"
#include "wire.hpp"

#include <span>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

std::uint32_t masked_crc(std::string_view bytes) {
  const auto crc = base::crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

std::string record_of(const Message& event) {
  const auto& data = event.bytes();
  const auto length = little_endian(data.size(), 8);
  return length + little_endian(masked_crc(length), 4) + data + little_endian(masked_crc(data), 4);
}

double seconds(std::int64_t time_ms) {
  return static_cast<double>(time_ms) / 1e3;
}

/// Event{wall_time 1, file_version 3}: the first of a file.
std::string first_record(std::int64_t time_ms) {
  return record_of(Message().real(1, seconds(time_ms)).text(3, "brain.Event:2"));
}

/// Event{wall_time 1, step 2, summary 5 {value 1 {tag 1, simple_value 2}}}.
std::string record_of(const Row& row) {
  Message summary;
  for (const auto& point : row.points) {
    summary.message(
        1,
        Message().text(1, metrics()[point.metric].name).single(2, static_cast<float>(point.value)));
  }
  return record_of(Message()
                       .real(1, seconds(row.time_ms))
                       .number(2, static_cast<std::uint64_t>(row.step))
                       .message(5, summary));
}

class TensorBoard : public Sink {
 public:
  explicit TensorBoard(fs::path folder) : folder_(std::move(folder)) {}

  void send(const RunFacts& run, std::span<const Row> rows, base::Json& state) override {
    const auto bytes = noted(state, "bytes");
    std::string text = bytes == 0 ? first_record(run.start_ms) : "";
    for (const auto& row : rows) text += record_of(row);
    state = {{"bytes", append_behind(file_of(run), bytes, text)}};
  }
  void end(const RunFacts&, base::Json&) override {}
  std::string place(const RunFacts& run) const override { return file_of(run).string(); }

 private:
  /// The same name at each call: a killed process has left no second file.
  fs::path file_of(const RunFacts& run) const {
    return folder_ / file_name_of(run.name) /
           base::format("events.out.tfevents.{}.trireme.{}", run.start_ms / 1000, run.id);
  }

  fs::path folder_;
};

}  // namespace

std::unique_ptr<Sink> tensorboard_sink(const fs::path& folder) {
  return std::make_unique<TensorBoard>(folder);
}

}  // namespace trireme::track
