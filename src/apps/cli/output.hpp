// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace trireme::apps {

/// Exception for a closed standard output (`trireme config show | head -1`): the command ends
/// without an error.
struct ReaderGone {};

/// A buffered output whose failures are never lost: write() and flush() throw base::Error
/// (ExitCode::checkpoint) when the disk is full, and ReaderGone when a pipe is closed.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() = default;

  void write(std::string_view text);
  /// Flushes output that a person waits for; the end of a command flushes by itself.
  void flush();

 private:
  int descriptor_;
  std::string buffer_;
};

/// Opens descriptors 0 to 2 where the caller left them closed, in a mode in which their use fails:
/// otherwise the first file opened would become standard output.
void guard_standard_descriptors();

}  // namespace trireme::apps
