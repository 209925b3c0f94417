// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/communicator.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/peer_error.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace trireme::comm::nccl {
namespace {

/// Longest wait for an orderly end, which requires only that the peers are alive.
constexpr std::chrono::seconds patience_at_end{5};

/// The wait for the initialisation of a communicator.
class InitOperation final : public PendingOperation {
 public:
  InitOperation(const Setting& setting, const OperationLabel& label, Communicator& communicator)
      : PendingOperation(*setting.progress, label),
        setting_(setting),
        communicator_(communicator) {}
  InitOperation(const InitOperation&) = delete;
  InitOperation& operator=(const InitOperation&) = delete;
  ~InitOperation() override {
    if (!done()) communicator_.abort();
  }

  bool advance() override {
    if (done()) return false;
    const bool ready = communicator_.ready();
    if (!communicator_.error().empty()) fail(*this, communicator_, setting_);
    if (!ready) return false;
    finish();
    return true;
  }
  std::vector<base::Rank> missing() const override { return others(label(), setting_); }
  std::vector<std::string> account() const override { return setting_.diagnostics->collect(); }

 private:
  const Setting& setting_;
  Communicator& communicator_;
};

}  // namespace

Communicator::~Communicator() {
  if (raw_ == nullptr || aborted_) return;
  if (!error_.empty() || std::uncaught_exceptions() > 0) {
    abort();
  } else {
    end_in_order();
  }
}

void Communicator::end_in_order() {
  note(setting_.api().finalize(raw_), "ncclCommFinalize");
  const auto begin = std::chrono::steady_clock::now();
  while (!ready() && error_.empty()) {
    if (std::chrono::steady_clock::now() - begin > patience_at_end) {
      error_ = "ncclCommFinalize does not end";
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (error_.empty()) note(setting_.api().destroy(raw_), "ncclCommDestroy");
  if (error_.empty()) return;
  base::log::local::warning("comm", "a communicator of NCCL did not end in good order: {}", error_);
  abort();
}

void Communicator::begin(const Begin& call) {
  Config config;
  config.blocking = 0;
  note(call(&raw_, &config), "the making of a communicator");
}

void Communicator::note(Result result, const char* call) {
  if (result == Result::success || result == Result::in_progress || !error_.empty()) return;
  error_ = base::format("{}: {}", call, setting_.api().get_error_string(result));
  const char* const last = setting_.api().get_last_error(raw_);
  if (last != nullptr && *last != '\0') error_ += base::format(" ({})", last);
  remote_ = result == Result::remote_error;
}

bool Communicator::ready() {
  if (!error_.empty()) return false;
  if (raw_ == nullptr) return true;
  auto state = Result::success;
  note(setting_.api().get_async_error(raw_, &state), "ncclCommGetAsyncError");
  note(state, "NCCL");
  return error_.empty() && state == Result::success;
}

void Communicator::abort() {
  if (raw_ == nullptr || aborted_) return;
  aborted_ = true;
  const auto result = setting_.api().abort(raw_);
  if (result != Result::success && result != Result::in_progress) {
    base::log::local::warning("comm", "ncclCommAbort: {}", setting_.api().get_error_string(result));
  }
}

std::vector<base::Rank> others(const OperationLabel& label, const Setting& setting) {
  std::vector<base::Rank> ranks(label.members.begin(), label.members.end());
  std::erase(ranks, setting.self);
  return ranks;
}

void fail(const PendingOperation& operation, Communicator& communicator, const Setting& setting) {
  // Order: before the abort, after which NCCL's RAS has no record of the communicator.
  auto account = operation.account();
  communicator.abort();
  auto* const watch = setting.progress->watch();
  if (watch != nullptr) watch->check(operation);
  const auto text =
      base::format("{} failed in NCCL {}: {} ({}); {}", operation.text(),
                   nccl_version_text(setting.library.version), communicator.error(),
                   communicator.is_remote() ? "a peer or the network to it is gone"
                                            : "no rank of the group can go on without it",
                   communicator.is_remote()
                       ? "read the logs of the other ranks"
                       : "NCCL_DEBUG=INFO says more, and comm.backend = staged does without");
  const auto& label = operation.label();
  throw PeerError(text, {std::string(label.operation),
                         std::string(label.group),
                         label.number,
                         {},
                         "",
                         0,
                         "",
                         std::move(account)});
}

void await_init(Communicator& communicator, const OperationLabel& label, const Setting& setting) {
  InitOperation init(setting, label, communicator);
  init.wait();
}

}  // namespace trireme::comm::nccl
