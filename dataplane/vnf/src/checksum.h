/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum. */
#ifndef VNF_CHECKSUM_H
#define VNF_CHECKSUM_H

#include <stdint.h>

/* Add the 16-bit words of RFC 1071 to a sum; begin with 0. Only the last byte of all may be odd. */
uint64_t checksum_add(uint64_t sum, const uint8_t *from, uint32_t length);

/* The value for the checksum field; 0 over data that includes a correct checksum. */
uint16_t checksum_fold(uint64_t sum);

/* The new field after a 16-bit word that it covers has changed: RFC 1624, equation 3. */
uint16_t checksum_update(uint16_t field, uint16_t old, uint16_t new);

#endif
