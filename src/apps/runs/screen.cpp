// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/screen.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace trireme::apps {
namespace {

constexpr std::array signals_of_end{SIGINT, SIGTERM, SIGHUP};

/// Set by a handler of signals, which can do no more.
volatile std::sig_atomic_t end_was_asked = 0;

void ask_for_end(int) {
  end_was_asked = 1;
}

void handle_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : signals_of_end) ::sigaction(signal, &action, nullptr);
}

void put(std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR && end_was_asked == 0) continue;
    // A terminal that is gone needs no picture.
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// True if a key that ends the program was pressed. `has_keys` becomes false at the input's end.
bool read_end_key(bool& has_keys) {
  std::array<char, 64> keys{};
  const auto count = ::read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) {
    has_keys = count < 0 && errno == EINTR;
    return false;
  }
  constexpr char end_of_text = '\x03';
  return std::any_of(keys.begin(), keys.begin() + count,
                     [](char key) { return key == 'q' || key == 'Q' || key == end_of_text; });
}

}  // namespace

Screen::Screen() {
  handle_signals(ask_for_end);
  has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &keys_before_) == 0;
  if (has_keys_) {
    auto keys = keys_before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    // Ctrl-Z would leave a shell on the alternate screen, without a cursor.
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  put("\033[?1049h\033[?25l");
}

Screen::~Screen() {
  put("\033[?25h\033[?1049l");
  if (keys_before_.c_lflag != 0) ::tcsetattr(STDIN_FILENO, TCSANOW, &keys_before_);
  handle_signals(SIG_DFL);
}

TerminalSize Screen::size() const {
  constexpr TerminalSize usual{80, 24};
  return terminal_size(STDOUT_FILENO).value_or(usual);
}

void Screen::draw(const std::string& lines) {
  drawn_ = size();
  // Each line is erased behind its end, and the screen below the last: nothing flickers.
  std::string picture = "\033[H";
  for (std::string_view rest = lines; !rest.empty();) {
    const auto end = rest.find('\n');
    picture += rest.substr(0, end);
    picture += "\033[K";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!rest.empty()) picture += "\r\n";
  }
  put(picture + "\033[J");
}

Screen::Event Screen::wait(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + time;
  // The size is asked for, not signalled: a signal of ours would interrupt reads of slow storage.
  constexpr std::chrono::milliseconds between_looks{100};
  for (;;) {
    if (end_was_asked != 0) return Event::end;
    const auto now_size = size();
    if (now_size.columns != drawn_.columns || now_size.rows != drawn_.rows) return Event::resized;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Event::none;
    pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    const auto pause = std::min(left, between_looks);
    if (::poll(&keys, 1, static_cast<int>(pause.count())) > 0 && read_end_key(has_keys_)) {
      return Event::end;
    }
  }
}

}  // namespace trireme::apps
