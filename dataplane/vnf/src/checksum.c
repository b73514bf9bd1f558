/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum. */
#include "checksum.h"

#include <arpa/inet.h>
#include <string.h>

#include "net.h"

static uint64_t reduce(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * Words are summed in the machine's byte order, and the sum is swapped at the end: RFC 1071,
 * section 2 (B). There is no array here, which a stack protector would guard for every packet.
 */
uint64_t checksum_add(uint64_t sum, const uint8_t *from, uint32_t length)
{
	uint64_t own = 0;

	for (; length >= 4; from += 4, length -= 4) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		own += word;
	}
	if (length >= 2) {
		sum += get16(from);
		from += 2;
		length -= 2;
	}
	if (length)
		sum += (uint32_t)*from << 8;
	return sum + ntohs((uint16_t)reduce(own));
}

uint16_t checksum_fold(uint64_t sum)
{
	return (uint16_t)~reduce(sum);
}

uint16_t checksum_update(uint16_t field, uint16_t old, uint16_t new)
{
	return checksum_fold((uint64_t)(uint16_t)~field + (uint16_t)~old + new);
}
