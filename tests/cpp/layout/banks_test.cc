// Bank conflicts against a count by bytes, the closed-form swizzle for every row stride, and the choice of swizzles.
#include "helve/layout/banks.h"

#include "oracle.h"

namespace helve {
namespace {

const Axis kM = axes::m();

Layout rows_of(int64_t rows, int64_t stride, Swizzle swizzle = {}) {
  return Layout({{rows, stride, kM}, {stride, 1, kM}}, {}, {}, swizzle);
}

BankAccess column(int64_t threads, int64_t stride, int64_t width, int64_t first_row = 0, int64_t at = 0) {
  BankAccess access{{}, width};
  for (int64_t t = 0; t < threads; ++t) access.first.push_back((first_row + t) * stride + at);
  return access;
}

/// The steps of each phase by the definition: bytes to words to banks, element by element.
std::vector<int64_t> depths_by_bytes(const Layout& layout, const BankAccess& access, int64_t element_bytes) {
  int64_t bytes = element_bytes * access.width;
  size_t served = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  std::vector<int64_t> depths;
  for (size_t begin = 0; begin < access.first.size(); begin += served) {
    std::map<int64_t, std::set<int64_t>> banks;
    for (size_t t = begin; t < std::min(begin + served, access.first.size()); ++t) {
      if (access.first[t] < 0) continue;
      for (int64_t j = 0; j < access.width; ++j) {
        oracle::Place at = *oracle::points(layout, access.first[t] + j).begin();
        for (int64_t b = 0; b < element_bytes; ++b) {
          int64_t word = (at[kM] * element_bytes + b) / 4;
          banks[word % 32].insert(word);
        }
      }
    }
    int64_t depth = 0;
    for (const auto& [bank, words] : banks) depth = std::max(depth, static_cast<int64_t>(words.size()));
    depths.push_back(depth);
  }
  return depths;
}

TEST(LayoutBanks, DepthsAgreeWithACountByBytes) {
  oracle::RandomLayouts random(5);
  for (int k = 0; k < 400; ++k) {
    int64_t element_bytes = int64_t{1} << random.number(0, 4);
    int64_t width = int64_t{1} << random.number(0, 4);
    if (element_bytes * width > 16) continue;
    int64_t vectors = random.number(1, 24);
    Swizzle swizzle{};
    if (random.number(0, 1)) {
      swizzle = {static_cast<int>(random.number(1, 3)), std::countr_zero(static_cast<uint64_t>(width)), 3};
    }
    Layout layout = rows_of(40, vectors * width, swizzle);
    BankAccess access{{}, width};
    for (int64_t t = random.number(0, 70); t > 0; --t) {
      access.first.push_back(random.number(0, 9) ? random.number(0, 40 * vectors - 1) * width : BankAccess::kInactive);
    }
    BankReport report = bank_conflicts(layout, access, element_bytes);
    std::vector<int64_t> depths;
    for (const BankPhase& phase : report.phases) depths.push_back(phase.depth);
    ASSERT_EQ(depths, depths_by_bytes(layout, access, element_bytes)) << to_string(layout) << " " << element_bytes;
  }
}

TEST(LayoutBanks, AWordCountsOnce) {
  Layout bytes = rows_of(4, 32);
  BankAccess same{std::vector<int64_t>(32, 5), 1};
  EXPECT_EQ(bank_conflicts(bytes, same, 4).depth(), 1);
  EXPECT_EQ(bank_conflicts(bytes, column(4, 32, 1), 1).depth(), 1);   // 4 bytes of 4 words in 4 banks
  EXPECT_EQ(bank_conflicts(rows_of(4, 128), column(4, 128, 1), 1).depth(), 4);
  EXPECT_EQ(bank_conflicts(rows_of(1, 32), column(32, 1, 1), 1).depth(), 1);  // 32 bytes of 8 words
  EXPECT_EQ(bank_conflicts(bytes, {{}, 1}, 4).depth(), 0);
  BankReport two = bank_conflicts(rows_of(64, 32), column(64, 32, 1), 4);  // two warps, each all in one bank
  EXPECT_EQ(two.phases.size(), 2u);
  EXPECT_EQ(two.phases[1].first_thread, 32);
  EXPECT_EQ(two.depth(), 32);
  EXPECT_EQ(two.extra_steps(), 62);
}

TEST(LayoutBanks, TheRuleIsFreeOfConflictsForEveryRowStride) {
  for (int64_t bytes : {4, 8, 16}) {
    int64_t slots = 128 / bytes;
    for (int64_t element_bytes : {1, 2, 4, 8, 16}) {
      if (element_bytes > bytes) continue;
      int64_t width = bytes / element_bytes;
      for (int64_t vectors = 1; vectors <= 128; ++vectors) {
        Swizzle swizzle = column_swizzle(vectors, slots, width);
        int64_t stride = vectors * width;
        // Addresses of vectors under the swizzle; whole, because its base keeps `width` elements together.
        for (int64_t group = 0; group < 3; ++group) {
          for (int64_t at = 0; at < vectors; ++at) {
            uint64_t slots_used = 0;
            for (int64_t t = 0; t < slots; ++t) {
              int64_t row = group * slots + t;
              int64_t address = oracle::swizzled(swizzle, row * stride + at * width);
              ASSERT_EQ(address % width, 0);
              ASSERT_EQ(address / stride, row) << "an element leaves its row";
              slots_used |= uint64_t{1} << (address / width % slots);
            }
            ASSERT_EQ(std::popcount(slots_used), slots) << bytes << " bytes, rows of " << vectors << " vectors";
          }
        }
      }
    }
  }
}

TEST(LayoutBanks, TheRuleGivesTheKnownSwizzles) {
  auto choose = [](int64_t stride, int64_t width) { return choose_swizzle(32, stride, 4, width); };
  EXPECT_EQ(choose(64, 1).swizzle, (Swizzle{5, 0, 6}));
  EXPECT_EQ(choose(64, 4).swizzle, (Swizzle{3, 2, 4}));
  EXPECT_EQ(choose(48, 4).swizzle, (Swizzle{2, 2, 3}));
  SwizzleChoice odd = choose(40, 4);
  EXPECT_EQ(odd.swizzle, (Swizzle{1, 2, 3}));
  EXPECT_EQ(odd.verdict, SwizzleVerdict::Proved);
  EXPECT_EQ(odd.depth, 1);
  EXPECT_EQ(odd.plain_depth, 2);
  EXPECT_EQ(odd.padding, 4);
  EXPECT_EQ(odd.padded_depth, 1);
  EXPECT_EQ(odd.padding_bytes, 32 * 4 * 4);
  EXPECT_EQ(choose(36, 4).swizzle, Swizzle{});
  EXPECT_EQ(choose(36, 4).padding, 0);
  // Rows of 64, 128 and 256 bytes of 2-byte elements, read by ldmatrix.
  EXPECT_EQ(choose_swizzle(64, 32, 2, 8).swizzle, (Swizzle{2, 3, 3}));
  EXPECT_EQ(choose_swizzle(64, 64, 2, 8).swizzle, (Swizzle{3, 3, 3}));
  EXPECT_EQ(choose_swizzle(64, 128, 2, 8).swizzle, (Swizzle{3, 3, 4}));
}

TEST(LayoutBanks, TheChosenDepthIsWhatTheReportSays) {
  for (int64_t stride : {8, 24, 32, 40, 64}) {
    for (int64_t width : {1, 2, 4}) {
      SwizzleChoice choice = choose_swizzle(32, stride, 4, width);
      int64_t plain = 0;
      int64_t swizzled = 0;
      for (int64_t at = 0; at < stride; at += width) {
        BankAccess access = column(32, stride, width, 0, at);
        plain = std::max(plain, bank_conflicts(rows_of(32, stride), access, 4).depth());
        swizzled = std::max(swizzled, bank_conflicts(rows_of(32, stride, choice.swizzle), access, 4).depth());
      }
      EXPECT_EQ(choice.plain_depth, plain);
      EXPECT_EQ(choice.depth, swizzled);
      EXPECT_EQ(swizzled, 1);
    }
  }
}

TEST(LayoutBanks, OtherAccessesAreSearched) {
  // A 32x32 transpose: columns are read and rows are written, one float each.
  BankAccess row{{}, 1};
  for (int64_t t = 0; t < 32; ++t) row.first.push_back(t);
  SwizzleChoice choice = choose_swizzle(32, 32, 4, 1, {row});
  EXPECT_EQ(choice.verdict, SwizzleVerdict::Searched);
  EXPECT_EQ(choice.depth, 1);
  EXPECT_EQ(bank_conflicts(rows_of(32, 32, choice.swizzle), row, 4).depth(), 1);
  EXPECT_EQ(bank_conflicts(rows_of(32, 32, choice.swizzle), column(32, 32, 1), 4).depth(), 1);
  EXPECT_LE(rows_of(32, 32, choice.swizzle).span(kM), 32 * 32);
}

TEST(LayoutBanks, PaddingIsNamedWhereItIsBetter) {
  // Two rows of 16 elements with gaps between them, beside the columns: no swizzle serves all, a longer row does
  // better.
  std::vector<BankAccess> patches;
  for (int64_t step : {1, 3, 5}) {
    BankAccess& patch = patches.emplace_back();
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 16; ++j) patch.first.push_back(i * step % 8 * 96 + j * step % 96);
    }
  }
  SwizzleChoice choice = choose_swizzle(8, 96, 4, 1, patches);
  EXPECT_EQ(choice.verdict, SwizzleVerdict::Padding);
  EXPECT_EQ(choice.padding_bytes, choice.padding * 8 * 4);
  for (int64_t at = 0; at < 96; ++at) patches.push_back(column(8, 96, 1, 0, at));
  auto extra = [&](const Layout& layout) {
    int64_t sum = 0;
    for (const BankAccess& access : patches) {
      for (int64_t depth : depths_by_bytes(layout, access, 4)) sum += std::max<int64_t>(depth - 1, 0);
    }
    return sum;
  };
  Layout padded({{8, 96 + choice.padding, kM}, {96, 1, kM}});
  EXPECT_LT(extra(padded), extra(rows_of(8, 96, choice.swizzle)));
  EXPECT_LT(extra(rows_of(8, 96, choice.swizzle)), extra(rows_of(8, 96)));
  for (int64_t less = 0; less < choice.padding; ++less) {
    EXPECT_GT(extra(Layout({{8, 96 + less, kM}, {96, 1, kM}})), extra(padded));
  }
}

TEST(LayoutBanks, Refusals) {
  std::string help =
      "\nhelp: an access is the index of the first element of each thread; a thread moves 1, 2, 4, 8 or 16 bytes, "
      "aligned "
      "to as many";
  auto refused = [](auto&& call) { return oracle::refusal<ShapeError>(call); };
  Layout plain = rows_of(4, 8);
  EXPECT_EQ(refused([&] { bank_conflicts(plain, {{0}, 3}, 4); }),
            "error[HV0519]: bank_conflicts: 3 elements of 4 bytes are no access of one thread" + help);
  EXPECT_EQ(
      refused([&] { bank_conflicts(plain, {{0, 2}, 4}, 4); }),
      "error[HV0519]: bank_conflicts: thread 1 begins at element 2, which is no multiple of 4: byte 8 is not aligned "
      "to 16" +
          help);
  EXPECT_EQ(refused([&] { bank_conflicts(Layout({{4, 1, kM}, {8, 4, kM}}), {{0}, 2}, 4); }),
            "error[HV0519]: bank_conflicts: elements 0 and 1 of thread 0 have the addresses 0 and 4, they are not "
            "contiguous" +
                help);
  EXPECT_EQ(refused([&] { bank_conflicts(Layout({{8, 1, kM}}, {{2, 8, kM}}), {{0}, 1}, 4); }),
            "error[HV0519]: bank_conflicts: S[8 : 1] + R[2 : 8] has replicas on m, an access has one address" + help);
  EXPECT_THROW(bank_conflicts(plain, {{30}, 4}, 4), BoundsError);
  EXPECT_EQ(refused([&] { choose_swizzle(32, 42, 4, 4); }),
            "error[HV0519]: choose_swizzle: rows of 42 elements do not keep vectors of 4 aligned" + help);
  EXPECT_THROW(choose_swizzle(0, 8, 4, 4), BoundsError);
  EXPECT_THROW(choose_swizzle(8, 8, 4, 0), BoundsError);
  EXPECT_EQ(
      refused([&] { choose_swizzle(1024, 1024, 4, 4); }),
      "error[HV0519]: choose_swizzle: a tile of 1024 rows of 1024 elements is beyond the limit of 262144 elements" +
          help);
}

TEST(LayoutBanks, TableOfAPhase) {
  BankReport report = bank_conflicts(rows_of(3, 64), {{0, 128, 64, 1}, 1}, 2);
  EXPECT_EQ(bank_table(report.phases[0]),
            "      00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31\n"
            "      ------------------------------------------------------------------------------------------------\n"
            "R00 | 00/03\n"
            "R01 | 02\n"
            "R02 | 01\n"
            "depth 3\n");
}

}  // namespace
}  // namespace helve
