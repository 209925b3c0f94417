// SPDX-License-Identifier: Apache-2.0
// Offline runs of Weights & Biases: ":W&B", u16 0xBEE1, u8 0, then records in LevelDB's log format
// (blocks of 32 KiB, chunks of u32 CRC-32 over type and data, u16 length, u8 type), each a protobuf
// Record (wandb/sdk/internal/datastore.py, wandb/proto/wandb_internal.proto).
#include "trireme/base/checksum.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/utc.hpp"

#include "sinks.hpp"
#include "wire.hpp"

#include <algorithm>
#include <span>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t block_bytes = 32 << 10;
constexpr std::uint64_t chunk_header_bytes = 7;
constexpr std::string_view file_header{":W&B\xE1\xBE\0", 7};

enum class ChunkType : unsigned char { full = 1, first, middle, last };

std::string chunk_of(ChunkType type, std::string_view data) {
  std::string typed(1, static_cast<char>(type));
  typed += data;
  return little_endian(base::crc32(std::as_bytes(std::span(typed))), 4) +
         little_endian(data.size(), 2) + typed;
}

/// Appends a record to `text`, which is to stand at `offset` of the file.
void add_record(std::string& text, std::uint64_t offset, std::string_view data) {
  bool is_first = true;
  do {
    auto left = block_bytes - (offset + text.size()) % block_bytes;
    if (left < chunk_header_bytes) {
      text.append(left, '\0');
      left = block_bytes;
    }
    const auto count = std::min<std::uint64_t>(data.size(), left - chunk_header_bytes);
    const bool is_last = count == data.size();
    auto type = is_first ? ChunkType::first : ChunkType::middle;
    if (is_last) type = is_first ? ChunkType::full : ChunkType::last;
    text += chunk_of(type, data.substr(0, count));
    data.remove_prefix(count);
    is_first = false;
  } while (!data.empty());
}

/// "20261121_093700" in UTC.
std::string time_text(std::int64_t time_ms) {
  std::string digits;
  for (const char letter : base::utc_text({time_ms / 1000, 0}).substr(0, 19)) {
    if (letter >= '0' && letter <= '9') digits += letter;
    if (letter == 'T') digits += '_';
  }
  return digits;
}

/// Timestamp{seconds 1, nanos 2}.
Message timestamp(std::int64_t time_ms) {
  return Message()
      .number(1, static_cast<std::uint64_t>(time_ms / 1000))
      .number(2, static_cast<std::uint64_t>(time_ms % 1000 * 1'000'000));
}

base::Json typed(const std::string& text) {
  const auto parsed = base::parse_json(text, "value");
  return parsed.ok() && parsed->is_primitive() ? *parsed : base::Json(text);
}

/// Record{num 1, run 17 {run_id 1, project 3, config 4, display_name 8, start_time 17}}.
Message run_record(const RunFacts& run, std::uint64_t number) {
  Message config;
  for (const auto& value : run.values) {
    // ConfigRecord{update 1 {key 1, value_json 16}}.
    config.message(1, Message().text(1, value.key).text(16, base::json_text(typed(value.text))));
  }
  const auto body = Message()
                        .text(1, run.id)
                        .text(3, "trireme")
                        .message(4, config)
                        .text(8, run.name)
                        .message(17, timestamp(run.start_ms));
  return Message().number(1, number).message(17, body);
}

/// Record{num 1, header 21 {version_info 1 {producer 1, min_consumer 2}}}.
Message header_record(std::uint64_t number) {
  const auto version = Message().text(1, "0.19.0").text(2, "0.15.0");
  return Message().number(1, number).message(21, Message().message(1, version));
}

class Wandb : public Sink {
 public:
  explicit Wandb(fs::path folder) : folder_(std::move(folder)) {}

  void send(const RunFacts& run, std::span<const Row> rows, base::Json& state) override {
    auto position = position_of(state);
    std::string text;
    if (position.bytes == 0) {
      text += file_header;
      add_record(text, 0, header_record(++position.records).bytes());
      add_record(text, 0, run_record(run, ++position.records).bytes());
    }
    for (const auto& row : rows) {
      // W&B's steps never decrease: a save that was written meanwhile stands with the newest one.
      position.step = std::max(position.step, row.step);
      const auto record = history(run, row, position);
      add_record(text, position.bytes, record.bytes());
      for (const auto& point : row.points) {
        position.summary[metrics()[point.metric].name] = point.value;
      }
    }
    position.bytes = append_behind(file_of(run), position.bytes, text);
    state = {{"bytes", position.bytes},
             {"records", position.records},
             {"step", position.step},
             {"summary", position.summary}};
  }

  /// Summary and exit stand behind the position that is noted: they are cut off when rows follow.
  void end(const RunFacts& run, base::Json& state) override {
    auto position = position_of(state);
    if (position.bytes == 0) return;
    Message update;
    for (const auto& [key, value] : position.summary.items()) {
      // SummaryRecord{update 1 {key 1, value_json 16}}.
      update.message(1, Message().text(1, key).text(16, base::json_text(value)));
    }
    std::string text;
    add_record(text, position.bytes,
               Message().number(1, ++position.records).message(3, update).bytes());
    if (run.state != report::State::running) {
      // RunExitRecord{exit_code 1, runtime 2}.
      const bool failed = run.state == report::State::failed;
      const auto seconds =
          static_cast<std::uint64_t>(std::max<std::int64_t>(run.end_ms - run.start_ms, 0) / 1000);
      const auto exit = Message().number(1, failed ? 1 : 0).number(2, seconds);
      add_record(text, position.bytes,
                 Message().number(1, ++position.records).message(18, exit).bytes());
    }
    append_behind(file_of(run), position.bytes, text);
  }

  std::string place(const RunFacts& run) const override {
    return file_of(run).parent_path().string();
  }

 private:
  struct Position {
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    std::int64_t step = 0;
    base::Json summary = base::Json::object();
  };

  static Position position_of(const base::Json& state) {
    Position position{noted(state, "bytes"), noted(state, "records"),
                      static_cast<std::int64_t>(noted(state, "step")), base::Json::object()};
    if (state.contains("summary")) position.summary = state["summary"];
    return position;
  }

  /// Record{num 1, history 2 {item 1 {key 1, value_json 16}, step 2 {num 1}}}.
  static Message history(const RunFacts& run, const Row& row, Position& position) {
    Message items;
    const auto add = [&items](std::string_view key, const base::Json& value) {
      items.message(1, Message().text(1, key).text(16, base::json_text(value)));
    };
    for (const auto& point : row.points) add(metrics()[point.metric].name, point.value);
    add("_step", position.step);
    add("_timestamp", static_cast<double>(row.time_ms) / 1e3);
    add("_runtime",
        static_cast<double>(std::max<std::int64_t>(row.time_ms - run.start_ms, 0)) / 1e3);
    items.message(2, Message().number(1, static_cast<std::uint64_t>(position.step)));
    return Message().number(1, ++position.records).message(2, items);
  }

  fs::path file_of(const RunFacts& run) const {
    return folder_ / "wandb" / base::format("offline-run-{}-{}", time_text(run.start_ms), run.id) /
           base::format("run-{}.wandb", run.id);
  }

  fs::path folder_;
};

}  // namespace

std::unique_ptr<Sink> wandb_sink(const fs::path& folder) {
  return std::make_unique<Wandb>(folder);
}

}  // namespace trireme::track
