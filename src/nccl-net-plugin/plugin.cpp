// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/environment.hpp"
#include "trireme/base/error.hpp"

#include "network.hpp"

#include <unistd.h>

#include <cstring>
#include <exception>

/// Tables that NCCL looks up by name. No exception may leave these functions.
namespace trireme::nccl_net {
namespace {

/// Plugin's name: runtime finds it in NCCL's log, and reads the lines of inform() there.
constexpr char plugin_name[] = "Trireme";

std::mutex state_mutex;
std::shared_ptr<Network> network;
/// Session of versions 9 and 10, which have no context: their communicators share one.
std::shared_ptr<Session> shared_session;
Logger log_function = nullptr;

void warn(const char* text) {
  if (log_function != nullptr) {
    log_function(LogLevel::warning, log_net, __FILE__, __LINE__, "NET/Trireme: %s", text);
  }
}

void inform(const char* text) {
  if (log_function != nullptr) {
    log_function(LogLevel::info, log_init | log_net, __FILE__, __LINE__, "NET/Trireme : %s", text);
  }
}

Result result_of(base::ExitCode code) {
  switch (code) {
    case base::ExitCode::peer:
      return Result::remote_error;
    case base::ExitCode::usage:
      return Result::invalid_usage;
    case base::ExitCode::done:
    case base::ExitCode::launch:
    case base::ExitCode::topology:
    case base::ExitCode::checkpoint:
    case base::ExitCode::internal:
    case base::ExitCode::requeue:
      return Result::system_error;
  }
  return Result::internal_error;
}

template <typename Act>
Result guarded(Act&& act) noexcept {
  try {
    act();
    return Result::success;
  } catch (const base::Error& error) {
    warn(error.what());
    return result_of(error.code());
  } catch (const std::exception& error) {
    warn(error.what());
    return Result::internal_error;
  } catch (...) {
    return Result::internal_error;
  }
}

std::shared_ptr<Network> open_network(Logger logger) {
  const std::lock_guard lock(state_mutex);
  log_function = logger;
  if (!network) {
    // Entry point: the plugin is loaded into any program.
    const auto environment = base::Environment::capture(environ);
    const auto text = [&](const char* name) { return environment.get(name).value_or(""); };
    network = std::make_shared<Network>(
        DeviceChoice{text("NCCL_IB_HCA"), text("NCCL_SOCKET_IFNAME"), text("UCX_NET_DEVICES"),
                     text("UCX_TCP_RX_SEG_SIZE")});
  }
  return network;
}

Connection& connection_of(void* object) {
  return *static_cast<Connection*>(object);
}

Result open_shared(Logger logger) {
  return guarded([&] {
    auto opened = open_network(logger);
    const std::lock_guard lock(state_mutex);
    if (!shared_session) shared_session = std::make_shared<Session>(std::move(opened));
  });
}
Result init_v9(Logger logger) {
  return open_shared(logger);
}
Result init_v10(Logger logger, void*) {
  return open_shared(logger);
}
Result init_v11(void** context, std::uint64_t, Configuration*, Logger logger, void*) {
  return guarded([&] { *context = new Session(open_network(logger)); });
}
Result finalize(void* context) {
  return guarded([&] { delete static_cast<Session*>(context); });
}
Result set_attributes(void*, void*) {
  return Result::success;
}

Result devices(int* count) {
  return guarded([&] { *count = network->device_count(); });
}

Result get_properties(int index, Properties* properties) {
  return guarded([&] {
    const auto& device = network->device(index);
    *properties = {};
    properties->name = const_cast<char*>(device.name.c_str());  // NCCL does not write into it
    properties->pci_path =
        device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
    properties->guid = device.guid;
    static const bool cuda = Worker(network->settings_of(device)).moves_cuda_memory();
    properties->pointer_support = cuda ? pointer_host | pointer_cuda : pointer_host;
    // A worker belongs to a communicator, and so do its registrations.
    properties->registration_is_global = 0;
    properties->megabits_per_second = device.megabits_per_second;
    properties->port = device.port;
    properties->max_connections = 64 * 1024;
    properties->max_receives = max_grouped_receives;
    properties->parts = {1, {index, 0, 0, 0}};
    properties->max_p2p_bytes = max_message_bytes;
    properties->max_collective_bytes = max_message_bytes;
  });
}
Result get_properties_v11(int index, PropertiesV11* properties) {
  properties->max_multi_request_size = 1;
  return get_properties(index, &properties->common);
}

Result listen_with(Session& session, int device, void* handle, void** listener) {
  return guarded([&] {
    auto made = session.listen(device);
    std::memset(handle, 0, handle_bytes);
    std::memcpy(handle, &made->handle(), sizeof(Handle));
    *listener = made.release();
  });
}
Result listen_shared(int device, void* handle, void** listener) {
  return listen_with(*shared_session, device, handle, listener);
}
Result listen_v11(void* context, int device, void* handle, void** listener) {
  return listen_with(*static_cast<Session*>(context), device, handle, listener);
}

Result connect_with(Session& session, int device, void* handle, void** connection) {
  *connection = nullptr;
  return guarded([&] { *connection = session.connect(device, handle).release(); });
}
Result connect_v9(int device, void* handle, void** connection, void**) {
  return connect_with(*shared_session, device, handle, connection);
}
Result connect_v10(int device, Configuration*, void* handle, void** connection, void**) {
  return connect_with(*shared_session, device, handle, connection);
}
Result connect_v11(void* context, int device, void* handle, void** connection, void**) {
  return connect_with(*static_cast<Session*>(context), device, handle, connection);
}

Result accept(void* listener, void** connection, void**) {
  *connection = nullptr;
  return guarded([&] { *connection = static_cast<Listener*>(listener)->accept().release(); });
}

Result register_memory(void* connection, void* data, std::size_t size, int type, void** mr) {
  return guarded([&] {
    auto& worker = connection_of(connection).worker();
    const std::lock_guard lock(worker.mutex());
    *mr = worker.register_memory(data, size, type);
  });
}
// NOLINTBEGIN(readability-function-size): NCCL defines the number of parameters
Result register_dma_buf(void*, void*, std::size_t, int, std::uint64_t, int, void**) {
  // Unsupported, and not offered in pointer_support: UCX 1.13 takes no file descriptors.
  return Result::invalid_usage;
}
Result deregister_memory(void* connection, void* mr) {
  return guarded([&] {
    auto& worker = connection_of(connection).worker();
    const std::lock_guard lock(worker.mutex());
    if (mr != nullptr) worker.release(static_cast<Registration*>(mr));
  });
}

Result send(void* connection, void* data, std::size_t size, int tag, void*, void** request) {
  return guarded([&] { *request = connection_of(connection).send(data, size, tag); });
}
Result send_profiled(void* connection, void* data, std::size_t size, int tag, void* mr, void*,
                     void** request) {
  return send(connection, data, size, tag, mr, request);
}
Result receive(void* connection, int count, void** data, std::size_t* sizes, int* tags, void**,
               void** request) {
  return guarded([&] { *request = connection_of(connection).receive(count, data, sizes, tags); });
}
Result receive_profiled(void* connection, int count, void** data, std::size_t* sizes, int* tags,
                        void** mrs, void**, void** request) {
  return receive(connection, count, data, sizes, tags, mrs, request);
}
// NOLINTEND(readability-function-size)
Result flush(void* connection, int count, void** data, int* sizes, void** mrs, void** request) {
  return guarded([&] { *request = connection_of(connection).flush(count, data, sizes, mrs); });
}
Result test(void* request, int* done, int* sizes) {
  *done = 0;
  return guarded([&] {
    auto& held = *static_cast<Request*>(request);
    auto& connection = *held.connection;
    if (!connection.test(held, sizes)) return;
    *done = 1;
    if (const auto news = connection.news(); !news.empty()) inform(news.c_str());
  });
}

Result close_connection(void* connection) {
  return guarded([&] { delete static_cast<Connection*>(connection); });
}
Result close_listener(void* listener) {
  return guarded([&] { delete static_cast<Listener*>(listener); });
}
/// Unsupported: no device here moves data by itself.
Result device_registration(void*, void*, void**) {
  return Result::internal_error;
}
Result consumed(void*, int, void*) {
  return Result::internal_error;
}
Result make_virtual_device(int* index, VirtualDevice* parts) {
  return guarded([&] {
    if (parts->count < 1 || parts->count > max_devices_per_nic) {
      throw base::Error(base::ExitCode::usage, "a device of 1 to 4 devices is possible");
    }
    *index = network->join({parts->devices, parts->devices + parts->count});
  });
}

constexpr Memory memory{accept, register_memory, register_dma_buf, deregister_memory};
constexpr Completion completion{flush,
                                test,
                                close_connection,
                                close_connection,
                                close_listener,
                                device_registration,
                                consumed,
                                make_virtual_device};

}  // namespace
}  // namespace trireme::nccl_net

namespace net = trireme::nccl_net;

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NCCL looks for these names
extern const net::NetV9 ncclNetPlugin_v9 = {
    net::plugin_name, net::init_v9, net::devices, net::get_properties, net::listen_shared,
    net::connect_v9,  net::memory,  net::send,    net::receive,        net::completion};
extern const net::NetV10 ncclNetPlugin_v10 = {
    net::plugin_name, net::init_v10, net::devices,       net::get_properties,   net::listen_shared,
    net::connect_v10, net::memory,   net::send_profiled, net::receive_profiled, net::completion};
extern const net::NetV11 ncclNetPlugin_v11 = {
    net::plugin_name,      net::init_v11,    net::devices,  net::get_properties_v11,
    net::listen_v11,       net::connect_v11, net::memory,   net::send_profiled,
    net::receive_profiled, net::completion,  net::finalize, net::set_attributes};
// NOLINTEND(readability-identifier-naming)
}
