/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum, whole and updated. */
#include "checksum.h"

#include "files.h"
#include "numbers.h"
#include "net.h"

/* RFC 1071, section 3. */
static void test_example(void)
{
	static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	CHECK_EQ(checksum_fold(checksum_add(0, bytes, sizeof(bytes))), 0x220d); /* ~ddf2 */
	CHECK_EQ(checksum_fold(checksum_add(checksum_add(0, bytes, 2), bytes + 2, 6)), 0x220d);
	CHECK_EQ(checksum_fold(checksum_add(0, bytes, 7)),
		 (uint16_t) ~(0x1 + 0xf203 + 0xf4f5 + 0xf600 - 2 * 0xffff));
	CHECK_EQ(checksum_fold(0), 0xffff);
}

/* RFC 1624, section 4: where the equation of RFC 1141 yields ffff. */
static void test_update_example(void)
{
	CHECK_EQ(checksum_update(0xdd2f, 0x5555, 0x3285), 0x0000);
}

/* Any word of any header: updated is as computed anew. */
static void test_update_is_as_computed(void)
{
	uint64_t state = 1;

	for (unsigned round = 0; round < 200000; round++) {
		uint8_t header[20];
		uint16_t before, value = (uint16_t)number_random(&state);
		unsigned at = round % 10 * 2;

		for (unsigned i = 0; i < 20; i++)
			header[i] = (uint8_t)(number_random(&state) >> 9);
		if (at == 10)
			continue;
		put16(header + 10, 0);
		before = checksum_fold(checksum_add(0, header, 20));
		before = checksum_update(before, (uint16_t)get16(header + at), value);
		put16(header + at, value);
		CHECK_EQ(before, checksum_fold(checksum_add(0, header, 20)));
	}
}

int main(void)
{
	test_example();
	test_update_example();
	test_update_is_as_computed();
	return 0;
}
