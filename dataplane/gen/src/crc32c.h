/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (RFC 3720, appendix B.4), by the CPU's instruction if it has one. The steps are for code
 * that has its words in registers: the state begins with CRC32C_BEGIN, and its complement is the
 * checksum.
 */
#ifndef GEN_CRC32C_H
#define GEN_CRC32C_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_BEGIN UINT32_MAX

/* The state after the lowest `bytes` (8, 4, 2 or 1) of a word, from the least significant on. */
typedef uint32_t crc32c_step(uint32_t state, uint64_t word, unsigned bytes);

crc32c_step crc32c_step_portable;

uint32_t crc32c(const void *data, size_t length);

/* The same without the instruction: the reference for tests. */
uint32_t crc32c_portable(const void *data, size_t length);

/* For functions that exist once for each step, and are inlined there. */
#define CRC32C_INLINE static inline __attribute__((always_inline))

/* The state after that many bytes. */
CRC32C_INLINE uint32_t crc32c_over(uint32_t state, const uint8_t *at, size_t length,
				   crc32c_step *step)
{
	for (; length >= 8; at += 8, length -= 8) {
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		state = step(state, le64toh(word), 8);
	}
	if (length & 4) {
		uint32_t word;

		memcpy(&word, at, sizeof(word));
		state = step(state, le32toh(word), 4);
		at += 4;
	}
	if (length & 2) {
		uint16_t word;

		memcpy(&word, at, sizeof(word));
		state = step(state, le16toh(word), 2);
		at += 2;
	}
	return length & 1 ? step(state, *at, 1) : state;
}

/* The state after that many zeros. */
CRC32C_INLINE uint32_t crc32c_zeros(uint32_t state, size_t length, crc32c_step *step)
{
	for (; length >= 8; length -= 8)
		state = step(state, 0, 8);
	if (length & 4)
		state = step(state, 0, 4);
	if (length & 2)
		state = step(state, 0, 2);
	return length & 1 ? step(state, 0, 1) : state;
}

#if defined(__x86_64__)
#define CRC32C_TARGET __attribute__((target("sse4.2")))

static inline bool crc32c_has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

CRC32C_TARGET static inline uint32_t crc32c_step_instruction(uint32_t state, uint64_t word,
							     unsigned bytes)
{
	switch (bytes) {
	case 8:
		return (uint32_t)__builtin_ia32_crc32di(state, word);
	case 4:
		return __builtin_ia32_crc32si(state, (uint32_t)word);
	case 2:
		return __builtin_ia32_crc32hi(state, (uint16_t)word);
	default:
		return __builtin_ia32_crc32qi(state, (uint8_t)word);
	}
}
#else
#define CRC32C_TARGET

static inline bool crc32c_has_instruction(void)
{
	return false;
}

#define crc32c_step_instruction crc32c_step_portable
#endif

#endif
