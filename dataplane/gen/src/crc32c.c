/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: by table, eight bytes at a time, or by instruction. */
#include "crc32c.h"

#include <string.h>

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

uint32_t crc32c_portable(const void *data, size_t length)
{
	const uint8_t *p = data;
	uint32_t c = ~0u;

	for (; length >= 8; p += 8, length -= 8) {
		uint32_t low = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				    (uint32_t)p[3] << 24);

		c = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
		    table[4][low >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
		    table[0][p[7]];
	}
	for (; length; p++, length--)
		c = c >> 8 ^ table[0][(c ^ *p) & 255];
	return ~c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const void *data, size_t length)
{
	const uint8_t *p = data;
	uint64_t c = ~0u, word;

	for (; length >= 8; p += 8, length -= 8) {
		memcpy(&word, p, sizeof(word));
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; length; p++, length--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return ~(uint32_t)c;
}

uint32_t crc32c(const void *data, size_t length)
{
	return __builtin_cpu_supports("sse4.2") ? by_instruction(data, length)
						: crc32c_portable(data, length);
}
#else
uint32_t crc32c(const void *data, size_t length)
{
	return crc32c_portable(data, length);
}
#endif
