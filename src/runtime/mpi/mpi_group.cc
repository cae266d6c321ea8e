// Messages by MPI.
// Plain sends and receives of bytes: they need no type of MPI's for small floats, have no limit of 2^31 elements, and a
// process that does not answer is known by its rank.
#include "helve/runtime/mpi/mpi_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <thread>

#include "helve/runtime/mpi/mpi_library.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

using namespace mpi;

constexpr int64_t kLongestMessage = int64_t{1} << 30;  ///< bytes; counts of MPI are int
constexpr int kTag = 0;  // messages between two processes stay in order

bool began_mpi = false;
const MpiLibrary* loaded = nullptr;

std::string text_of(const MpiLibrary& mpi, int error) {
  std::array<char, kMpiErrorText + 1> text{};
  int length = 0;
  if (mpi.error_string(error, text.data(), &length) != kMpiSuccess) return fmt::format("error {} of MPI", error);
  return std::string(text.data(), static_cast<size_t>(length));
}

class MpiTransmission final : public Transmission {
 public:
  MpiTransmission(const MpiLibrary& mpi, MpiComm comm) : mpi_(mpi), comm_(comm) {}
  MpiTransmission(const MpiTransmission&) = delete;
  MpiTransmission& operator=(const MpiTransmission&) = delete;

  ~MpiTransmission() override {
    for (Piece& each : open_) {
      if (each.receives) mpi_.cancel(&each.request);
      int done = 0;
      MpiStatus status{};
      if (each.receives && mpi_.test(&each.request, &done, &status) == kMpiSuccess && done != 0) continue;
      mpi_.request_free(&each.request);
    }
  }

  /// Throws CarrierFault.
  void begin(const Message& message, bool receives) {
    for (int64_t at = 0; at < message.bytes; at += kLongestMessage) {
      const int bytes = static_cast<int>(std::min(kLongestMessage, message.bytes - at));
      const int peer = static_cast<int>(message.peer);
      MpiRequest request = nullptr;
      const int error = receives ? mpi_.irecv(message.data + at, bytes, mpi_.byte, peer, kTag, comm_, &request)
                                 : mpi_.isend(message.data + at, bytes, mpi_.byte, peer, kTag, comm_, &request);
      if (error != kMpiSuccess) throw CarrierFault{message.peer, text_of(mpi_, error)};
      open_.push_back({request, message.peer, bytes, receives});
    }
  }

  size_t advance() override {
    std::optional<CarrierFault> fault;
    std::erase_if(open_, [&](Piece& each) {
      std::string reason;
      const bool is_over = is_done(each, reason);
      if (!reason.empty() && !fault) fault = CarrierFault{each.peer, std::move(reason)};
      return is_over;
    });
    if (fault) throw std::move(*fault);
    return open_.size();
  }

  std::vector<int64_t> awaited() const override {
    std::vector<int64_t> out;
    for (const Piece& each : open_) out.push_back(each.peer);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  struct Piece {
    MpiRequest request;
    int64_t peer;
    int bytes;
    bool receives;
  };

  /// Has the request ended? With a reason if not as it should.
  bool is_done(Piece& piece, std::string& reason) const {
    int done = 0;
    MpiStatus status{};
    int error = mpi_.test(&piece.request, &done, &status);
    if (error == kMpiSuccess && done == 0) return false;
    int came = piece.bytes;
    if (error == kMpiSuccess && piece.receives) error = mpi_.get_count(&status, mpi_.byte, &came);
    if (error != kMpiSuccess) reason = text_of(mpi_, error);
    if (error == kMpiSuccess && came != piece.bytes)
      reason = fmt::format("it sent {} bytes where {} were expected", came, piece.bytes);
    return true;
  }

  const MpiLibrary& mpi_;
  MpiComm comm_;
  std::vector<Piece> open_;
};

class MpiCarrier final : public Carrier {
 public:
  MpiCarrier(const MpiLibrary& mpi, MpiComm comm) : mpi_(mpi), comm_(comm) {
    mpi_.comm_set_errhandler(comm_, mpi_.errors_return);
    mpi_.comm_rank(comm_, &rank_);
    mpi_.comm_size(comm_, &size_);
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  std::unique_ptr<Transmission> start(std::span<const Message> sends, std::span<const Message> receives) override {
    auto out = std::make_unique<MpiTransmission>(mpi_, comm_);
    for (const Message& each : receives) out->begin(each, true);
    for (const Message& each : sends) out->begin(each, false);
    return out;
  }

 private:
  const MpiLibrary& mpi_;
  MpiComm comm_;
  int rank_ = 0;
  int size_ = 1;
};

/// The number of processes that the launcher says it started; 0 where none says so.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

[[noreturn]] void fail(std::string reason, std::string remedy) {
  throw UserError(Code::ProcessesMissing, {}, {{"reason", std::move(reason)}, {"remedy", std::move(remedy)}});
}

}  // namespace

std::shared_ptr<ProcessGroup> mpi_group(std::span<const std::string> paths, ProcessGroup::Options options) {
  const MpiLibrary& mpi = mpi_library(paths);
  loaded = &mpi;
  int done = 0, provided = 0;
  mpi.finalized(&done);
  if (done != 0) fail("MPI has ended in this process", "use it before MPI_Finalize");
  mpi.initialized(&done);
  if (done != 0) {
    mpi.query_thread(&provided);
  } else {
    const int error = mpi.init_thread(nullptr, nullptr, kMpiThreadMultiple, &provided);
    if (error != kMpiSuccess) fail(fmt::format("MPI_Init_thread: {}", text_of(mpi, error)), "see what mpirun prints");
    began_mpi = true;
  }
  if (provided < kMpiThreadSerialized)
    fail("MPI was initialised for one thread only", "initialise it with MPI_THREAD_SERIALIZED or more");
  int size = 0;
  mpi.comm_size(mpi.world, &size);
  if (size == 1 && launched_processes() > 1) {
    fail(fmt::format("{} processes were started by a launcher of another MPI than {}", launched_processes(), mpi.path),
         "start them by helve launch, or by the mpirun beside that library");
  }
  MpiComm comm = nullptr;
  mpi.comm_dup(mpi.world, &comm);
  return std::make_shared<ProcessGroup>(std::make_unique<MpiCarrier>(mpi, comm), options);
}

void finalize_mpi(ProcessGroup& group) {
  const bool is_broken = group.is_broken();
  group.end();
  if (!began_mpi) return;
  began_mpi = false;
  int done = 0;
  loaded->finalized(&done);
  if (done != 0) return;
  if (is_broken) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  } else {
    loaded->finalize();
  }
}

}  // namespace helve::runtime
