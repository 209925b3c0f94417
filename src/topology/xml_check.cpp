// SPDX-License-Identifier: Apache-2.0
#include "xml_check.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/topology/discover.hpp"

#include "hwloc_topology.hpp"
#include "read.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace trireme::topology {
namespace {

constexpr int max_depth = 128;         // real machines with PCI switches stay below 30
constexpr int max_elements = 1 << 18;  // 384 threads with all details make 5,000
constexpr unsigned max_os_index = 1U << 16;
constexpr std::size_t max_bitmap_text = 1U << 15;  // 11 characters for each 32 processors
constexpr unsigned child_seconds = 20;

base::Failure refuse(std::string_view source, std::string_view problem) {
  return {base::ExitCode::topology,
          base::format("{} is not the description of a machine: {}; record one with 'lstopo "
                       "machine.xml'",
                       source, problem)};
}

/// Nesting and number of elements, without understanding them.
base::Status check_shape(std::string_view xml, std::string_view source) {
  int depth = 0;
  int elements = 0;
  for (std::size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at)) {
    const auto end = xml.find('>', at);
    if (end == std::string_view::npos) return refuse(source, "it ends inside an element");
    const auto tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with("!") || tag.starts_with("?")) continue;
    if (tag.starts_with("/")) {
      --depth;
      continue;
    }
    if (++elements > max_elements) {
      return refuse(source, base::format("it has more than {} elements", max_elements));
    }
    if (!tag.ends_with("/") && ++depth > max_depth) {
      return refuse(source, base::format("its elements are nested deeper than {}", max_depth));
    }
  }
  if (elements == 0) return refuse(source, "it has no XML elements");
  return {};
}

/// hwloc makes bit sets as long as the highest number it reads: keep the numbers reasonable.
base::Status check_numbers(std::string_view xml, std::string_view source) {
  constexpr std::string_view name = "os_index=\"";
  for (auto at = xml.find(name); at != std::string_view::npos; at = xml.find(name, at)) {
    at += name.size();
    const auto value = xml.substr(at, xml.find('"', at) - at);
    const auto index = base::number_in<unsigned>(value);
    // PCI objects of old versions carry large numbers, which are not made into sets.
    const auto element = xml.substr(xml.rfind('<', at), at - xml.rfind('<', at));
    const bool makes_set = element.find("\"PU\"") != std::string_view::npos ||
                           element.find("\"NUMANode\"") != std::string_view::npos;
    if (makes_set && (!index || *index >= max_os_index)) {
      return refuse(source, base::format("'os_index=\"{}\"' is not below {}", value.substr(0, 40),
                                         max_os_index));
    }
  }
  for (auto at = xml.find("set=\""); at != std::string_view::npos; at = xml.find("set=\"", at)) {
    at += 5;
    if (xml.find('"', at) - at > max_bitmap_text) {
      return refuse(source, "it has a set of processors larger than any machine");
    }
  }
  return {};
}

[[noreturn]] void load_and_leave(std::string_view xml, std::string_view source) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) {
    static_cast<void>(std::signal(signal, SIG_DFL));
  }
  // The parsers' messages about a bad file are for developers; the refusal's text is for users.
  if (auto nowhere = base::open_file("/dev/null", O_WRONLY); nowhere.ok()) {
    dup2(nowhere->get(), STDERR_FILENO);
  }
  alarm(child_seconds);
  int status = 1;
  try {
    const auto topology = load_xml(xml, source);
    if (topology.ok()) {
      static_cast<void>(read_machine(topology->get()));
      status = 0;
    }
  } catch (...) {
    status = 1;
  }
  _exit(status);  // exit handlers of the parent must not run twice
}

}  // namespace

base::Status check_xml(std::string_view xml, std::string_view source) {
  if (xml.size() > max_xml_bytes) {
    return refuse(source, base::format("it is larger than {}", base::bytes_text(max_xml_bytes)));
  }
  if (xml.find('\0') != std::string_view::npos) return refuse(source, "it has zero bytes");
  if (xml.find("<!ENTITY") != std::string_view::npos) {
    return refuse(source, "it defines entities");
  }
  if (auto shape = check_shape(xml, source); !shape.ok()) return shape;
  return check_numbers(xml, source);
}

base::Status try_in_child(std::string_view xml, std::string_view source) {
  const pid_t child = fork();
  if (child < 0) {
    base::throw_errno(base::ExitCode::topology, "cannot start a process to read a machine", errno);
  }
  if (child == 0) load_and_leave(xml, source);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      base::throw_errno(base::ExitCode::topology, "cannot wait for a process", errno);
    }
  }
  if (WIFSIGNALED(status)) {
    return refuse(
        source, base::format("hwloc's parser ended with '{}' on it", strsignal(WTERMSIG(status))));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return refuse(source, "hwloc cannot load it");
  }
  return {};
}

}  // namespace trireme::topology
