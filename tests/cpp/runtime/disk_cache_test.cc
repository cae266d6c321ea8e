// The cache: what is stored comes back, what is damaged does not, the limit holds, many processes agree.
#include "helve/runtime/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "processes.h"
#include "temporary_folder.h"

namespace helve::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = 1 << 20;

std::vector<fs::path> files_of(const DiskCache& cache) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(cache.folder())) out.push_back(entry.path());
  return out;
}

TEST(DiskCache, KeepsPayloads) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kMiB);
  EXPECT_EQ(cache.load(sha256("a")), std::nullopt);
  for (const std::string& payload :
       {std::string(), std::string("x"), std::string(100000, '\0'), std::string("a\0b", 3)}) {
    EXPECT_FALSE(cache.store(sha256("a"), payload));
    EXPECT_EQ(cache.load(sha256("a")), payload);
    EXPECT_EQ(cache.load(sha256("b")), std::nullopt);
    EXPECT_EQ(files_of(cache).size(), 1u);  // nothing is left beside the entry
  }
}

TEST(DiskCache, DamagedEntriesAreDroppedAndMadeAgain) {
  const std::string payload = "the payload of an entry";
  for (int damage = 0; damage < 5; ++damage) {
    const TemporaryFolder folder;
    const DiskCache cache(folder.path(), kMiB);
    cache.store(sha256("a"), payload);
    const fs::path file = files_of(cache).at(0);
    const auto size = static_cast<std::streamoff>(fs::file_size(file));
    if (damage == 0) fs::resize_file(file, static_cast<uintmax_t>(size - 1));  // cut off
    if (damage == 1) fs::resize_file(file, 8);  // the magic number alone
    if (damage == 2) std::ofstream(file, std::ios::app) << "more";
    if (damage > 2) {  // one byte of the payload, one of the header
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(damage == 3 ? size - 2 : 20);
      stream.put('\x7f');
    }
    EXPECT_EQ(cache.load(sha256("a")), std::nullopt) << damage;
    EXPECT_TRUE(files_of(cache).empty()) << damage;
    cache.store(sha256("a"), payload);
    EXPECT_EQ(cache.load(sha256("a")), payload);
  }
}

TEST(DiskCache, TheLeastRecentlyUsedGoFirst) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), 4500);
  const std::string payload(1000, 'x');  // four entries fit with their headers
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    const std::string key(1, static_cast<char>('a' + i));
    cache.store(sha256(key), payload);
    fs::last_write_time(fs::path(cache.folder()) / to_hex(sha256(key)), now - std::chrono::minutes(10 - i));
  }
  EXPECT_TRUE(cache.load(sha256("a")));  // the oldest is used, so "b" is the next to go
  cache.store(sha256("e"), payload);
  EXPECT_FALSE(cache.load(sha256("b")));
  for (const char* kept : {"a", "c", "d", "e"}) EXPECT_TRUE(cache.load(sha256(kept))) << kept;
}

TEST(DiskCache, WhatIsLargerThanTheLimitIsNotKept) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), 100), off(folder.path(), 0);
  EXPECT_FALSE(cache.store(sha256("a"), std::string(100, 'x')));
  EXPECT_FALSE(off.store(sha256("a"), "x"));
  EXPECT_FALSE(fs::exists(cache.folder()));
  cache.store(sha256("b"), "x");
  EXPECT_TRUE(cache.load(sha256("b")));
  EXPECT_FALSE(off.load(sha256("b")));
}

TEST(DiskCache, AbandonedFilesAreSweptFreshOnesStay) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kMiB);
  cache.store(sha256("a"), "x");
  const fs::path old = fs::path(cache.folder()) / ".new-1-0-0", fresh = fs::path(cache.folder()) / ".new-2-0-0";
  std::ofstream(old) << "HELVEC01 and half of the rest";
  std::ofstream(fresh) << "HELVEC01 and half of the rest";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.store(sha256("b"), "x");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST(DiskCache, AFolderThatCannotBeUsedIsAWarning) {
  const TemporaryFolder folder;
  const fs::path file = fs::path(folder.path()) / "file";
  std::ofstream(file) << "no folder";
  const DiskCache cache(file.string(), kMiB);
  EXPECT_FALSE(cache.load(sha256("a")));
  const std::optional<Diagnostic> warning = cache.store(sha256("a"), "x");
  ASSERT_TRUE(warning);
  EXPECT_EQ(to_text(*warning),
            "warning[HV0910]: the cache folder " + file.string() +
                "/v1 cannot be used: Not a directory\nhelp: set HELVE_CACHE_DIR to a folder that can "
                "be written, or HELVE_CACHE_LIMIT=0 to go without");
}

TEST(DiskCache, FilesOfOthersStayWhereTheyAre) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), 500);
  cache.store(sha256("a"), std::string(300, 'x'));
  const fs::path inside = cache.folder();
  const std::string hex = to_hex(sha256("thesis"));
  const std::vector<fs::path> foreign = {inside / "data.npy",   inside / "thesis.doc",
                                         inside / ".new-notes", inside / hex,
                                         inside / ".new-1-2-3", fs::path(folder.path()) / "beside"};
  for (const fs::path& path : foreign) {
    std::ofstream(path) << std::string(1000, 'y');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(48));
  }
  // What could be the beginning of an entry could be anything else.
  const fs::path empty = inside / to_hex(sha256("empty")), prefix = inside / to_hex(sha256("prefix")),
                 aside = inside / ".new-4-5-6";
  std::ofstream(empty).close();
  std::ofstream(prefix) << "HELVEC0";
  std::ofstream(aside) << "H";
  for (const fs::path& path : {empty, prefix, aside})
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(48));
  fs::create_directory(inside / to_hex(sha256("folder")));
  fs::create_symlink(foreign[0], inside / to_hex(sha256("link")));
  for (const char* key : {"b", "c", "d"}) EXPECT_FALSE(cache.store(sha256(key), std::string(300, 'x')));
  EXPECT_FALSE(cache.load(sha256("a")));  // what is ours went, as the limit wants it
  for (const fs::path& path : foreign) EXPECT_EQ(fs::file_size(path), 1000u) << path;
  EXPECT_TRUE(fs::is_directory(inside / to_hex(sha256("folder"))));
  EXPECT_TRUE(fs::is_symlink(inside / to_hex(sha256("link"))));
  // A name of an entry that somebody else has taken is neither read nor written.
  for (const char* key : {"thesis", "link", "folder", "empty", "prefix"}) {
    EXPECT_FALSE(cache.load(sha256(key)));
    EXPECT_TRUE(cache.store(sha256(key), "x")) << key;
  }
  EXPECT_EQ(fs::file_size(inside / hex), 1000u);
  EXPECT_EQ(fs::file_size(empty), 0u);
  EXPECT_EQ(fs::file_size(prefix), 7u);
  EXPECT_EQ(fs::file_size(aside), 1u);
}

TEST(DiskCache, PipesAndHugeFilesAreNoEntries) {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kMiB);
  cache.store(sha256("a"), "x");
  const auto path = [&](const char* key) { return (fs::path(cache.folder()) / to_hex(sha256(key))).string(); };
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(cache.load(sha256("pipe")));
  EXPECT_TRUE(cache.store(sha256("pipe"), "x"));
  // A hole of 4 TiB, by itself and behind a header that says as much: neither is read.
  std::ofstream(path("hole")).close();
  fs::copy_file(path("a"), path("long"));
  for (const char* key : {"hole", "long"}) {
    fs::resize_file(path(key), uintmax_t{1} << 42);
    EXPECT_FALSE(cache.load(sha256(key)));
  }
  EXPECT_TRUE(fs::exists(path("hole")));  // begins like no entry
  EXPECT_FALSE(fs::exists(path("long")));
  EXPECT_FALSE(cache.store(sha256("b"), "y"));
  EXPECT_TRUE(cache.load(sha256("b")));
}

TEST(DiskCache, AFolderThatOthersCanWriteIsNotTrusted) {
  const TemporaryFolder folder;
  const auto reason = [](const DiskCache& cache) -> std::string {
    const std::optional<Diagnostic> warning = cache.store(sha256("a"), "x");
    return warning ? std::get<std::string>(warning->args[1].second) : "";
  };
  const DiskCache cache(folder.path(), kMiB);
  EXPECT_EQ(reason(cache), "");
  EXPECT_EQ(fs::status(cache.folder()).permissions(), fs::perms::owner_all);
  ASSERT_TRUE(cache.load(sha256("a")));

  fs::permissions(cache.folder(), fs::perms::all);
  EXPECT_EQ(reason(cache), "others can write into " + cache.folder());
  EXPECT_FALSE(cache.load(sha256("a")));
  chmod(cache.folder().c_str(), 01777);  // shared like /tmp: its entries could be anybody's
  EXPECT_EQ(reason(cache), "others can write into " + cache.folder());
  fs::permissions(cache.folder(), fs::perms::owner_all);

  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::group_write);
  EXPECT_EQ(reason(cache), "others can write into " + folder.path());
  chmod(folder.path().c_str(), 01777);  // a folder in one like /tmp is its owner's
  EXPECT_EQ(reason(cache), "");
  EXPECT_TRUE(cache.load(sha256("a")));

  if (geteuid() == 0) {
    ASSERT_EQ(chown(cache.folder().c_str(), 12345, 12345), 0);
    EXPECT_EQ(reason(cache), cache.folder() + " belongs to another user");
    EXPECT_FALSE(cache.load(sha256("a")));
    const DiskCache linked((fs::path(folder.path()) / "link").string(), kMiB);
    fs::create_symlink(folder.path(), fs::path(folder.path()) / "link");
    EXPECT_EQ(reason(linked), cache.folder() + " belongs to another user");
  }
}

TEST(DiskCache, TheEnvironmentNamesFolderAndLimit) {
  const auto with = [](const char* name, const char* value, auto&& ask) {
    const char* before = std::getenv(name);
    const std::string kept = before != nullptr ? before : "";
    setenv(name, value, 1);
    auto out = ask();
    before != nullptr ? setenv(name, kept.c_str(), 1) : unsetenv(name);
    return out;
  };
  EXPECT_EQ(with("HELVE_CACHE_DIR", "/a/b", default_cache_folder), "/a/b");
  const auto xdg = [&] { return with("XDG_CACHE_HOME", "/x", default_cache_folder); };
  EXPECT_EQ(with("HELVE_CACHE_DIR", "", xdg), "/x/helve");
  const auto home = [&] {
    return with("XDG_CACHE_HOME", "", [&] { return with("HOME", "/h", default_cache_folder); });
  };
  EXPECT_EQ(with("HELVE_CACHE_DIR", "", home), "/h/.cache/helve");
  EXPECT_EQ(with("HELVE_CACHE_LIMIT", "", default_cache_limit), int64_t{1} << 30);
  EXPECT_EQ(with("HELVE_CACHE_LIMIT", "3", default_cache_limit), 3 * kMiB);
  for (const char* wrong : {"-1", "1.5", "many", "3 ", "99999999999999999999"}) {
    try {
      with("HELVE_CACHE_LIMIT", wrong, default_cache_limit);
      FAIL() << wrong;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()), "error[HV0911]: HELVE_CACHE_LIMIT is '" + std::string(wrong) +
                                               "'\nhelp: give the largest size of the cache in MiB, a whole number; 0 "
                                               "turns the cache off");
    }
  }
  unsetenv("HELVE_CACHE_LIMIT");
}

/// 64 processes write and read the same and different entries at once, in a cache too small for all of them: whatever
/// is found is whole, and the entry that all of them share is never wrong.
TEST(DiskCache, ManyProcesses) {
  const TemporaryFolder folder;
  const auto payload_of = [](int key) { return std::string(2000 + 100 * key, static_cast<char>('A' + key)); };
  run_processes(64, [&](int process) {
    const DiskCache cache(folder.path(), 20000);
    int faults = 0;
    for (int round = 0; round < 20; ++round) {
      const int key = round % 2 == 0 ? 0 : (process + round) % 16;
      const std::string name(1, static_cast<char>(key));
      const auto found = cache.load(sha256(name));
      faults += found && *found != payload_of(key);
      faults += !found && cache.store(sha256(name), payload_of(key)).has_value();
    }
    return faults;
  });
  const DiskCache cache(folder.path(), 20000);
  int64_t bytes = 0;
  for (const fs::path& file : files_of(cache)) {
    EXPECT_FALSE(file.filename().string().starts_with(".new-")) << file;
    bytes += static_cast<int64_t>(fs::file_size(file));
  }
  EXPECT_LE(bytes, 20000);
  EXPECT_GT(bytes, 0);
}

TEST(BuildId, NamesTheLinkedFile) {
  EXPECT_GE(build_id().size(), 16u);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace helve::runtime
