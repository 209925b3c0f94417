// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/net_plugin.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using base::Environment;
using runtime::find_net_plugins;
using runtime::NetPlugins;
using Values = std::vector<std::pair<std::string, std::string>>;
using Variables = std::map<std::string, std::string, std::less<>>;
namespace fs = std::filesystem;

namespace {

void make_file(const fs::path& path, const std::string& text = "") {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

Values settings_of(const NetPlugins& plugins, const Environment& environment) {
  Values values;
  for (const auto& one : runtime::plugin_settings(plugins, environment)) {
    CHECK_FALSE(one.reason.empty());
    values.emplace_back(one.variable, one.value);
  }
  return values;
}

/// A system and a program in a folder.
struct Site {
  fs::path root() const { return folder.path() / "root"; }
  fs::path program() const { return folder.path() / "opt/bin/trireme"; }
  fs::path own() const { return folder.path() / "opt/lib/libnccl-net-trireme.so"; }
  NetPlugins find(Variables variables = {}) const {
    return find_net_plugins(Environment(std::move(variables)), program(), root());
  }

  tests::TemporaryFolder folder;
};

}  // namespace

TEST_CASE("the site's plugin is preferred, and told to use UCX") {
  const NetPlugins both{"/usr/lib/libnccl-net.so", "/opt/lib/libnccl-net-trireme.so", true};
  CHECK(settings_of(both, Environment()) == Values{{"NCCL_PLUGIN_P2P", "ucx"}});
  CHECK(settings_of(both, Environment(Variables{{"NCCL_PLUGIN_P2P", "ib"}})).empty());
}

TEST_CASE("ours is used only by who asks for it, where it can move the memory of GPUs") {
  const NetPlugins own{"", "/opt/lib/libnccl-net-trireme.so", true};
  const NetPlugins both{"/usr/lib/libnccl-net.so", "/opt/lib/libnccl-net-trireme.so", true};
  const NetPlugins blind{"", "/opt/lib/libnccl-net-trireme.so", false};
  const Environment asks(Variables{{"NCCL_NET_PLUGIN", "trireme"}});
  const Values ours{{"NCCL_NET_PLUGIN", "/opt/lib/libnccl-net-trireme.so"}};
  CHECK(settings_of(own, Environment()).empty());
  CHECK(settings_of(own, asks) == ours);
  CHECK(settings_of(both, asks) == ours);
  CHECK(settings_of(blind, asks).empty());
  CHECK(settings_of({}, asks).empty());
  const Environment other(Variables{{"NCCL_NET_PLUGIN", "trireme"}, {"NCCL_NET", "IB"}});
  CHECK(settings_of(own, other).empty());
}

TEST_CASE("a user's choice of network settles it") {
  const NetPlugins both{"/usr/lib/libnccl-net.so", "/opt/lib/libnccl-net-trireme.so", true};
  for (const char* const variable : {"NCCL_NET", "NCCL_NET_PLUGIN"}) {
    CHECK(settings_of(both, Environment(Variables{{variable, "none"}})).empty());
  }
}

TEST_CASE("plugins are found where the loader looks") {
  const Site site;
  CHECK(site.find().sites.empty());
  CHECK(site.find().own.empty());
  make_file(site.own());
  CHECK(site.find().own == site.own().string());
  // In a folder of the system, in the loader's list, in LD_LIBRARY_PATH: the last wins.
  make_file(site.root() / "usr/lib64/libnccl-net.so");
  CHECK(site.find().sites == (site.root() / "usr/lib64/libnccl-net.so").string());
  make_file(site.root() / "opt/sharp/libnccl-net.so");
  std::string list = "glibc-ld.so.cache1.1";
  for (const char* const word :
       {"libnccl-net.so", "/gone/libnccl-net.so", "libnccl-net.so", "/opt/sharp/libnccl-net.so"}) {
    list += '\0' + std::string(word);
  }
  list += '\0';
  make_file(site.root() / "etc/ld.so.cache", list);
  CHECK(site.find().sites == (site.root() / "opt/sharp/libnccl-net.so").string());
  const auto mine = site.folder.path() / "mine";
  make_file(mine / "libnccl-net.so");
  CHECK(site.find({{"LD_LIBRARY_PATH", ":/none:" + mine.string()}}).sites ==
        (mine / "libnccl-net.so").string());
}

TEST_CASE("our plugin moves the memory of GPUs where its UCX has that module") {
  const Site site;
  const auto ucx = site.root() / "usr/lib/x86_64-linux-gnu";
  make_file(ucx / "libucp.so.0");
  make_file(ucx / "ucx/libuct_ib.so.0");
  make_file(site.own());
  CHECK_FALSE(site.find().own_moves_gpu_memory);
  make_file(ucx / "ucx/libuct_cuda.so.0");
  CHECK(site.find().own_moves_gpu_memory);
}
