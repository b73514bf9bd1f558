/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver. rf_zmq_imp.c hands a buffer to each call, and scales it in place: so samples are
 * copied once, out of shared memory, and cannot be shown to srsRAN there. There is no thread and no
 * ring in between, unlike with ZeroMQ.
 */
#include "rf_dray.h"

#include <errno.h>
#include <srsran/phy/common/phy_common.h>
#include <srsran/phy/utils/vector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP (-1000)  /* other than srsRAN's errors */
#define UNDER_WAY 64 /* subframes on a link, at most */

/* What srsRAN's struct of a receiver has no place for. q->nsamples is how many came. */
struct receiver {
	struct dray_iq *stream;
	struct rf_dray_context *context;
	int32_t offset; /* the device argument rx_offset */
	int64_t lead;	/* zeros to insert now; negative: samples to leave out */
	bool in_gap;	/* another peer has come, and where it starts is not known yet */
};

int rf_zmq_rx_open(rf_zmq_rx_t *q, rf_zmq_opts_t opts, void *context, char *port)
{
	struct receiver *r = calloc(1, sizeof(*r));

	memset(q, 0, sizeof(*q));
	snprintf(q->id, sizeof(q->id), "%s", opts.id);
	q->frequency_mhz = opts.frequency_mhz;
	q->fail_on_disconnect = opts.fail_on_disconnect;
	q->trx_timeout_ms = opts.trx_timeout_ms;
	q->log_trx_timeout = opts.log_trx_timeout;
	pthread_mutex_init(&q->mutex, NULL);
	if (r)
		r->stream = rf_dray_open(&opts, port, DRAY_IQ_RECEIVE);
	if (!r || !r->stream) {
		free(r);
		return SRSRAN_ERROR;
	}
	r->context = context;
	r->lead = r->offset = opts.sample_offset;
	q->sock = r;
	q->running = true;
	return SRSRAN_SUCCESS;
}

/* Where the present peer starts to get what this side sends. -ENOTCONN: not known yet. */
static int peer_start(struct rf_dray_context *c, uint64_t *samples)
{
	uint64_t bytes = 0;
	int ret = 0;

	pthread_mutex_lock(&c->mutex);
	if (c->sender)
		ret = dray_iq_start(c->sender, &bytes);
	pthread_mutex_unlock(&c->mutex);
	*samples = NBYTES2NSAMPLES(bytes);
	return ret;
}

/*
 * Another peer has come: its sample 0 belongs where it starts to get samples, since that is its
 * sample 0 too. Else its uplink would not be where its downlink is. If that was long ago, it is the
 * same peer, and what is missing is not known. Returns whether the start is known.
 */
static bool leave_gap(rf_zmq_rx_t *q, struct receiver *r, uint32_t nsamples)
{
	uint64_t start;

	if (peer_start(r->context, &start))
		return false;
	r->in_gap = false;
	r->lead = (int64_t)(start - q->nsamples) + r->offset;
	if (r->lead < -(int64_t)UNDER_WAY * nsamples)
		r->lead = 0;
	return true;
}

/*
 * Fill a buffer. If the time is over in the middle, it waits on: what came belongs into this
 * buffer, and the peer is about to send the rest.
 */
static int fill(rf_zmq_rx_t *q, struct receiver *r, cf_t *buffer, uint32_t nsamples)
{
	int timeout = q->trx_timeout_ms ? (int)q->trx_timeout_ms : -1;
	size_t done = 0, bytes = NSAMPLES2NBYTES(nsamples);

	while (done < bytes) {
		ssize_t n =
			dray_iq_receive(r->stream, (uint8_t *)buffer + done, bytes - done, timeout);

		if (n == -ECONNRESET)
			return GAP;
		if (n < 0)
			return rf_dray_failed("receiving", (int)n);
		done += (size_t)n;
		if (done == 0 || (done < bytes && q->fail_on_disconnect))
			return SRSRAN_ERROR_TIMEOUT;
	}
	return SRSRAN_SUCCESS;
}

/* Leave samples out while r->lead is negative. */
static int leave_out(rf_zmq_rx_t *q, struct receiver *r, cf_t *buffer, uint32_t nsamples)
{
	while (r->lead < 0) {
		uint32_t some = (uint32_t)SRSRAN_MIN(-r->lead, (int64_t)nsamples);
		int ret = fill(q, r, buffer, some);

		if (ret)
			return ret;
		r->lead += some;
	}
	return SRSRAN_SUCCESS;
}

/* Zeros while r->lead is positive or in a gap, then samples. */
static int receive(rf_zmq_rx_t *q, struct receiver *r, cf_t *buffer, uint32_t nsamples)
{
	uint32_t zeros = 0;
	int ret;

	if (r->in_gap && !leave_gap(q, r, nsamples)) {
		memset(buffer, 0, NSAMPLES2NBYTES(nsamples));
		return SRSRAN_SUCCESS;
	}
	ret = leave_out(q, r, buffer, nsamples);
	if (ret)
		return ret;
	if (r->lead > 0)
		zeros = (uint32_t)SRSRAN_MIN(r->lead, (int64_t)nsamples);
	memset(buffer, 0, NSAMPLES2NBYTES(zeros));
	ret = fill(q, r, buffer + zeros, nsamples - zeros);
	if (!ret)
		r->lead -= zeros;
	return ret;
}

/* The mutex is held. */
static int receive_over_gaps(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	struct receiver *r = q->sock;
	int ret;

	if (!r)
		return SRSRAN_ERROR;
	while ((ret = receive(q, r, buffer, nsamples)) == GAP) {
		fprintf(stderr, "[dray] %s: the other side of the radio was restarted\n", q->id);
		r->in_gap = true;
	}
	if (ret)
		return ret;
	q->nsamples += nsamples;
	return (int)NSAMPLES2NBYTES(nsamples);
}

/* Returns bytes, as srsRAN's own receiver does. */
int rf_zmq_rx_baseband(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = receive_over_gaps(q, buffer, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

bool rf_zmq_rx_match_freq(rf_zmq_rx_t *q, uint32_t freq_hz)
{
	return q && (q->frequency_mhz == 0 || q->frequency_mhz == freq_hz);
}

bool rf_zmq_rx_is_running(rf_zmq_rx_t *q)
{
	return q && rf_dray_running(&q->running);
}

/* End a call that waits, then wait for it. */
void rf_zmq_rx_close(rf_zmq_rx_t *q)
{
	struct receiver *r = q->sock;

	if (!r)
		return;
	__atomic_store_n(&q->running, false, __ATOMIC_RELAXED);
	dray_iq_stop(r->stream);
	pthread_mutex_lock(&q->mutex);
	dray_iq_close(r->stream);
	free(r);
	q->sock = NULL;
	pthread_mutex_unlock(&q->mutex);
}
