/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a broker that a test drives by hand, so that it can lie. */
#ifndef DRAY_TEST_FAKEBROKER_H
#define DRAY_TEST_FAKEBROKER_H

#include <stdbool.h>

#include "wire.h"

#define FAKE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define FAKE_LIVE (FAKE_SEALS | F_SEAL_SEAL | 0x10) /* with FUTURE_WRITE */

/* Listen for the port "a" in a new directory, which fake_directory() names. */
void fake_listen(void);
void fake_close(void);
const char *fake_directory(void);
int fake_accept(void);

/*
 * Hang up on those whom nobody accepted. A port that lost its broker dials again after 100 ms: if
 * it is closed before anyone accepts that, the next session would get it in place of its own port.
 */
void fake_forget(void);

void fake_send_raw(int fd, const void *bytes, size_t size);

/* Wait for a message of a type; false when the end hangs up or sends ERROR first. */
bool fake_hear(int fd, enum wire_type type);

/* A WELCOME that is right; and send one with a telemetry descriptor, which is closed (-1: none). */
void fake_welcome(struct wire_message *m);
void fake_welcome_with(int fd, struct wire_message *m, int telemetry);
int fake_telemetry(void);

/* Wait for HELLO, and send a WELCOME that is right. */
void fake_greet(int fd);

#endif
