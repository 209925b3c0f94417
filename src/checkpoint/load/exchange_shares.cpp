// SPDX-License-Identifier: Apache-2.0
// Who reads what, and who wants it.
#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"

#include "checkpoint/load/exchange.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace trireme::checkpoint {
namespace {

constexpr int request_tag = 0x10AD;
/// Bytes that are read before a message with values of them goes out.
constexpr std::uint64_t chunk_bytes = std::uint64_t{32} << 20;

void append(std::string& text, std::int64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Numbers of a request, one after the other.
class RequestReader {
 public:
  explicit RequestReader(const std::string& text) : text_(text) {}
  bool is_at_end() const { return at_ >= text_.size(); }
  std::int64_t number() {
    std::int64_t value = 0;
    TRIREME_EXPECT(at_ + sizeof value <= text_.size(), "a request is whole");
    std::memcpy(&value, &text_[at_], sizeof value);
    at_ += sizeof value;
    return value;
  }
  layout::Shape numbers(std::size_t count) {
    layout::Shape all;
    for (std::size_t index = 0; index < count; ++index) all.push_back(number());
    return all;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

Exchange::Exchange(const std::filesystem::path& step_folder, const Manifest& manifest,
                   std::uint64_t box_bytes, const std::vector<FileReads>& reads,
                   comm::ProcessGroup& world, const LoadOptions& options)
    : folder_(step_folder),
      manifest_(manifest),
      box_bytes_(box_bytes),
      reads_(reads),
      world_(world),
      options_(options),
      chunk_blocks_(std::max<std::uint64_t>(1, chunk_bytes / manifest.block_bytes)) {
  first_block_.push_back(0);
  for (const auto& file : manifest.files) {
    first_block_.push_back(first_block_.back() + manifest.block_count(file));
  }
}

/// Shares follow from the bytes of each rank's boxes, the same on every rank. Ranks that share
/// cores divide them: more threads than verify would leave the values of many reads waiting at the
/// end.
void Exchange::divide_blocks() {
  struct Part {
    std::uint64_t bytes;
    std::uint64_t cores;
  };
  Part mine{box_bytes_, id_of_cores()};
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<Part> parts(ranks);
  constexpr std::int64_t words = sizeof(Part) / sizeof(std::int32_t);
  world_.all_gather({&mine, device::DType::i32, {words}},
                    {parts.data(), device::DType::i32, {words * world_.size()}});
  const auto sharing = std::count_if(parts.begin(), parts.end(),
                                     [&](const Part& part) { return part.cores == mine.cores; });
  if (options_.threads == 0) options_.threads = threads_of_part(static_cast<int>(sharing));
  double total = 0;
  for (const auto& part : parts) total += static_cast<double>(part.bytes);
  const auto blocks = static_cast<double>(first_block_.back());
  first_of_share_.assign(ranks + 1, first_block_.back());
  double before = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (total > 0) first_of_share_[rank] = static_cast<std::uint64_t>(blocks * (before / total));
    before += static_cast<double>(parts[rank].bytes);
  }
}

/// Requests of this rank to each: numbers of tensors, and boxes of them.
std::vector<std::string> Exchange::requests() const {
  std::vector<std::set<const LoadItem*>> wanted(static_cast<std::size_t>(world_.size()));
  for (const auto& reads : reads_) {
    for (const auto& transfer : reads.transfers) {
      const auto bytes = manifest_.block_bytes;
      const auto first = first_block_[reads.file] + transfer.begin() / bytes;
      const auto last = first_block_[reads.file] + (transfer.end() - 1) / bytes;
      const auto share =
          std::upper_bound(first_of_share_.begin(), first_of_share_.end(), first) - 1;
      for (auto at = share; at != first_of_share_.end() - 1 && *at <= last; ++at) {
        wanted[static_cast<std::size_t>(at - first_of_share_.begin())].insert(transfer.item);
      }
    }
  }
  std::vector<std::string> texts(wanted.size());
  const auto& tensors = manifest_.contents.tensors;
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    // In the order of the items: they are elements of one array.
    for (const auto* item : wanted[rank]) {
      append(texts[rank], manifest_.contents.find(item->name) - tensors.data());
      for (const auto number : item->box.offset) append(texts[rank], number);
      for (const auto number : item->box.length) append(texts[rank], number);
    }
  }
  return texts;
}

void Exchange::exchange_requests() {
  auto texts = requests();
  const auto ranks = texts.size();
  std::vector<std::int32_t> asked(ranks);
  std::vector<std::int32_t> wanted(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    asked[rank] = static_cast<std::int32_t>(texts[rank].size() / sizeof(std::int32_t));
  }
  const auto count = static_cast<std::int64_t>(ranks);
  world_.all_to_all({asked.data(), device::DType::i32, {count}},
                    {wanted.data(), device::DType::i32, {count}});
  std::vector<std::string> from(ranks);
  std::vector<comm::Work> works;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto peer = static_cast<int>(rank);
    if (peer == world_.rank()) continue;
    if (wanted[rank] > 0) {
      from[rank].resize(static_cast<std::size_t>(wanted[rank]) * sizeof(std::int32_t));
      works.push_back(world_.start_receive({from[rank].data(), device::DType::i32, {wanted[rank]}},
                                           peer, request_tag));
    }
    if (asked[rank] > 0) {
      works.push_back(world_.start_send({texts[rank].data(), device::DType::i32, {asked[rank]}},
                                        peer, request_tag));
    }
  }
  for (auto& work : works) work.wait();
  std::map<std::string, std::vector<int>> ranks_by_request;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!from[rank].empty()) ranks_by_request[from[rank]].push_back(static_cast<int>(rank));
  }
  for (const auto& [request, members] : ranks_by_request) {
    auto& audience = audiences_.emplace_back(audience_of(request));
    audience.ranks = members;
    audience.reads = base::value_or_throw(plan_reads(manifest_, audience.items));
  }
}

/// Items whose memory is a peer's: only the order of their elements in the files counts here.
Exchange::Audience Exchange::audience_of(const std::string& request) const {
  Audience audience;
  const auto& tensors = manifest_.contents.tensors;
  for (RequestReader numbers(request); !numbers.is_at_end();) {
    const auto index = static_cast<std::size_t>(numbers.number());
    TRIREME_EXPECT(index < tensors.size(), "a request names tensors of the checkpoint");
    const auto& tensor = tensors[index];
    layout::Box box;
    box.offset = numbers.numbers(tensor.shape.size());
    box.length = numbers.numbers(tensor.shape.size());
    // Memory that is never touched; a tensor without any has no elements.
    static std::byte elsewhere;
    const device::Tensor values(&elsewhere, tensor.dtype, {layout::element_count(box)});
    audience.items.push_back({tensor.name, tensor.shape, std::move(box), values});
  }
  return audience;
}

}  // namespace trireme::checkpoint
