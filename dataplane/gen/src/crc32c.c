/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: by table, eight bytes at a time, or by instruction. */
#include "crc32c.h"

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];

/* Made before main, so that no thread sees it half made. */
__attribute__((constructor)) static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

uint32_t crc32c_step_portable(uint32_t state, uint64_t word, unsigned bytes)
{
	if (bytes < 8) {
		for (; bytes; bytes--, word >>= 8)
			state = state >> 8 ^ table[0][(state ^ word) & 255];
		return state;
	}
	word ^= state;
	state = 0;
	for (int k = 7; k >= 0; k--, word >>= 8)
		state ^= table[k][word & 255];
	return state;
}

uint32_t crc32c_portable(const void *data, size_t length)
{
	return ~crc32c_over(CRC32C_BEGIN, data, length, crc32c_step_portable);
}

CRC32C_TARGET static uint32_t by_instruction(const void *data, size_t length)
{
	return ~crc32c_over(CRC32C_BEGIN, data, length, crc32c_step_instruction);
}

uint32_t crc32c(const void *data, size_t length)
{
	return crc32c_has_instruction() ? by_instruction(data, length)
					: crc32c_portable(data, length);
}
