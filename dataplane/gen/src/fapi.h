/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a MAC sends to a PHY in the 5G FAPI (Small Cell Forum 222, PHY API): in each slot
 * DL_TTI.request, then TX_DATA.request. Both are due when the slot begins.
 */
#ifndef GEN_FAPI_H
#define GEN_FAPI_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

#define FAPI_HEADERS 12u    /* bytes: of the PHY API, of the message, and SFN and slot */
#define FAPI_MIN 128u	    /* bytes of a message */
#define FAPI_MAX (4u << 20) /* the same; what a message buffer of a dray link has at most */

enum fapi_kind { FAPI_DL_TTI, FAPI_TX_DATA, FAPI_KINDS };

struct fapi {
	uint32_t scs;		  /* kHz; 0: there is no FAPI */
	uint32_t dl_tti, tx_data; /* bytes of a message, with its headers */
	uint64_t within_ns;	  /* after the slot has begun, until which messages must arrive */
	struct slots slots;
};

/*
 * Read "scs=30[,dl-tti=2048][,tx-data=115000][,within=500]", the last in us. Returns NULL, or what
 * is wrong.
 */
const char *fapi_read(const char *text, struct fapi *fapi);

/* Write the headers before a payload of that many bytes. */
void fapi_write(uint8_t *message, const struct fapi *fapi, uint32_t payload, uint64_t number);

/*
 * Bytes of the payload, after FAPI_HEADERS; 0 if it is not one of these messages. The sender may
 * still be writing to the message: the result is within `length` even then.
 */
uint32_t fapi_payload(const uint8_t *message, uint32_t length);

/* The window of a received message: in the slot nearest to `ns`. false: it has none. */
bool fapi_window(const struct fapi *fapi, const uint8_t *message, uint64_t ns,
		 struct slots_window *window);

#endif
