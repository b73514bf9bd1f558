/* SPDX-License-Identifier: Apache-2.0 */
/* What sender and receiver have in common, and srsRAN's pause. */
#include "rf_dray.h"

#include <errno.h>
#include <srsran/phy/common/phy_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#undef usleep

/*
 * srsRAN's radio sleeps for as long as a subframe lasts, and then computes: it is always slower
 * than real time. Without that, it is as fast as the machine.
 */
int rf_dray_pause(useconds_t us)
{
	const char *unpaced = getenv("DRAY_RF_UNPACED");

	return unpaced && strcmp(unpaced, "1") == 0 ? 0 : usleep(us);
}

void *rf_dray_context_new(void)
{
	struct rf_dray_context *c = calloc(1, sizeof(*c));

	if (c)
		pthread_mutex_init(&c->mutex, NULL);
	return c;
}

void rf_dray_context_free(void *context)
{
	struct rf_dray_context *c = context;

	pthread_mutex_destroy(&c->mutex);
	free(c);
}

struct dray_iq *rf_dray_open(const rf_zmq_opts_t *opts, const char *port,
			     enum dray_iq_direction direction)
{
	struct dray_iq *stream;
	int ret;

	if ((opts->socket_type != ZMQ_REQ && opts->socket_type != ZMQ_REP) ||
	    opts->sample_format != ZMQ_TYPE_FC32) {
		fprintf(stderr,
			"[dray] Error: port %s: leave tx_type, rx_type, tx_format and "
			"rx_format out of device_args: they are ZeroMQ's\n",
			port);
		return NULL;
	}
	ret = dray_iq_open(port, direction, NULL, &stream);
	if (ret) {
		fprintf(stderr, "[dray] Error: port %s: %s\n", port, dray_iq_strerror(ret));
		return NULL;
	}
	return stream;
}

int rf_dray_failed(const char *what, int error)
{
	if (error != -ECANCELED)
		fprintf(stderr, "[dray] Error: %s: %s\n", what, dray_iq_strerror(error));
	return SRSRAN_ERROR;
}
