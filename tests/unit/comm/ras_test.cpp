// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/diagnostics/ras.hpp"

#include "support/ras_server.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

using namespace trireme;
using namespace trireme::testing;
using comm::nccl::ask_ras;
using comm::nccl::findings_of_ras;
using Names = std::vector<std::string>;

namespace {

/// As NCCL writes it for a job whose nodes are alike.
std::string answer_of(int processes, const std::string& errors, const std::string& warnings) {
  return "NCCL version 2.28.9 compiled with CUDA 13.0\n"
         "CUDA runtime version 13000, driver version 13000\n\n"
         "Job summary\n===========\n\n"
         "  Nodes  Processes         GPUs  Processes     GPUs\n"
         "(total)   per node  per process    (total)  (total)\n"
         "      2          4            1          " +
         std::to_string(processes) + "        " + std::to_string(processes) +
         "\n\nCommunicators... (0.01s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         2         4         8         8   RUNNING  MISMATCH\n"
         "\nErrors\n======\n\n" +
         errors + "Warnings\n========\n\n" + warnings;
}

const std::string dead =
    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 4711 on node 10.0.0.2 managing GPU 3\n\n";
const std::string behind =
    "#0-0 (00c0ffee) MISMATCH\n"
    "  Communicator ranks have different AllReduce operation counts\n"
    "  7 ranks have launched up to operation 12\n"
    "  Rank 3 has launched up to operation 11 -- GPU 3 managed by process 4711 on node "
    "10.0.0.2\n\n";

/// How long it took, and that it failed so.
double failure_within(const std::string& address, const std::string& words,
                      std::size_t most_bytes = 1 << 20) {
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = ask_ras({address, std::chrono::milliseconds(300), most_bytes});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  REQUIRE_FALSE(answer.ok());
  CHECK_THAT(answer.failure().text, Catch::Contains(words));
  return took.count();
}

void wait_for_end(int socket) {
  while (!hear_line(socket).empty()) {
  }
}

}  // namespace

TEST_CASE("what NCCL's watch finds of dead ranks and of ranks that are behind is told") {
  RasServer server(RasServer::answering(answer_of(8, dead, behind)));
  const auto answer = ask_ras({server.address()});
  REQUIRE(answer.ok());
  const std::string last =
      "RAS: Rank 3 has launched up to operation 11 -- GPU 3 managed by process 4711 on node "
      "10.0.0.2";
  CHECK(findings_of_ras(*answer, 8) ==
        Names{"RAS: DEAD",
              "RAS: 1 job process is considered dead (unreachable via the RAS network)",
              "RAS: Process 4711 on node 10.0.0.2 managing GPU 3", "RAS: #0-0 (00c0ffee) MISMATCH",
              "RAS: Communicator ranks have different AllReduce operation counts",
              "RAS: 7 ranks have launched up to operation 12", last});
  CHECK(server.callers() == 1);
}

TEST_CASE("what is asked comes in the order and in the words of NCCL's own client") {
  Names heard;
  {
    RasServer server([&](int socket) {
      heard.push_back(hear_line(socket));
      // The number of a later version.
      say(socket, "SERVER PROTOCOL 3\n");
      heard.push_back(hear_line(socket));
      say(socket, "OK\n");
      heard.push_back(hear_line(socket));
      say(socket, "done\n");
    });
    REQUIRE(ask_ras({server.address(), std::chrono::milliseconds(5000)}).ok());
  }
  CHECK(heard == Names{"CLIENT PROTOCOL 2", "TIMEOUT 4", "STATUS"});
}

TEST_CASE("an answer without findings, of another job or cut off says so") {
  CHECK(findings_of_ras(answer_of(8, "", ""), 8) ==
        Names{"RAS finds no error, and ranks that do not differ"});
  const auto other = findings_of_ras(answer_of(16, dead, ""), 8);
  REQUIRE(other.size() == 1);
  CHECK_THAT(other[0], Catch::Contains("16 processes, and this job has 8"));
  const auto text = answer_of(8, dead, "");
  CHECK(findings_of_ras(text.substr(0, text.find("Errors")), 8) ==
        Names{"RAS did not come to its findings in time"});
  // Nodes that differ are summed up in a row of three.
  const std::string uneven =
      "  Nodes  Processes         GPUs\n          per node  per process\n      1          4        "
      "  "
      "  1\n      1          3            1\n\n  Nodes  Processes         GPUs\n(total)    (total) "
      " "
      "    (total)\n      2          7              7\n\nCommunicators...\n\nErrors\n======\n\n";
  CHECK(findings_of_ras(uneven, 7).size() == 1);
  CHECK_THAT(findings_of_ras(uneven, 8)[0], Catch::Contains("7 processes"));
}

TEST_CASE("garbage is shown as nothing but letters, and not all of it") {
  std::string garbage = "Errors\n======\n";
  for (int i = 0; i < 1000; ++i) garbage += "\x1b[31m" + std::string(5000, '\x07') + "\xff\n";
  const auto findings = findings_of_ras(garbage, 8);
  REQUIRE(findings.size() == 25);
  for (const auto& finding : findings) {
    CHECK(finding.size() <= 205);
    for (const char letter : finding) CHECK((letter >= ' ' && letter <= '~'));
  }
  CHECK(findings_of_ras("", 8).size() == 1);
  CHECK(findings_of_ras(std::string(100000, '\n'), 8).size() == 1);
}

TEST_CASE("who does not answer, or not in time, or speaks another language is left alone") {
  {
    RasServer silent(wait_for_end);
    CHECK(failure_within(silent.address(), "does not speak its protocol") < 2);
  }
  {
    RasServer web([](int socket) { say(socket, "HTTP/1.1 400 Bad Request\r\n\r\n"); });
    failure_within(web.address(), "does not speak its protocol");
  }
  {
    RasServer endless([](int socket) {
      while (say(socket, std::string(65536, 'x'))) {
      }
    });
    CHECK(failure_within(endless.address(), "does not speak its protocol") < 2);
  }
  {
    RasServer unlimited([](int socket) {
      hear_line(socket);
      say(socket, "SERVER PROTOCOL 2\n");
      hear_line(socket);
      say(socket, "ERROR: Unknown command\n");
      wait_for_end(socket);
    });
    CHECK(failure_within(unlimited.address(), "takes no time limit") < 2);
  }
  {
    RasServer hung([](int socket) {
      hear_line(socket);
      say(socket, "SERVER PROTOCOL 2\n");
      hear_line(socket);
      say(socket, "OK\n");
      wait_for_end(socket);
    });
    CHECK(failure_within(hung.address(), "says nothing") < 2);
  }
  std::string nobody;
  {
    const RasServer gone(wait_for_end);
    nobody = gone.address();
  }
  failure_within(nobody, "does not answer");
}

TEST_CASE("an answer of a gigabyte, or one that drips, ends at its limits") {
  const auto greet = [](int socket) {
    hear_line(socket);
    say(socket, "SERVER PROTOCOL 2\n");
    hear_line(socket);
    say(socket, "OK\n");
    hear_line(socket);
  };
  {
    RasServer flood([&](int socket) {
      greet(socket);
      for (int i = 0; i < 1024 && say(socket, std::string(1 << 20, 'x')); ++i) {
      }
    });
    const auto answer = ask_ras({flood.address(), std::chrono::milliseconds(3000), 100000});
    REQUIRE(answer.ok());
    CHECK(answer->size() == 100000);
  }
  RasServer drip([&](int socket) {
    greet(socket);
    while (say(socket, "x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = ask_ras({drip.address(), std::chrono::milliseconds(300)});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 2);
  REQUIRE(answer.ok());
  CHECK(findings_of_ras(*answer, 8) == Names{"RAS did not come to its findings in time"});
}

TEST_CASE("nothing but this node is asked") {
  for (const char* const address :
       {"10.0.0.1:28028", "example.org:28028", "[fe80::1%eth0]:28028", "[2001:db8::1]:28028",
        "localhost", "localhost:", "localhost:0", "localhost:99999", "localhost:28x", "", ":28028",
        "128.0.0.1:1", "[::ffff:10.0.0.1]:28028", "[]:1", "0.0.0.0:28028"}) {
    CAPTURE(address);
    failure_within(address, "is not asked");
  }
  for (const char* const address : {"127.255.0.1:1", "[::1]:1", "localhost:1"}) {
    CAPTURE(address);
    failure_within(address, "does not answer");
  }
}
