/* SPDX-License-Identifier: Apache-2.0 */
/* What is due on the control plane, and the optional thread that does it. */
#ifndef DRAY_SERVICE_H
#define DRAY_SERVICE_H

#include "port.h"

#define SERVICE_MS 250 /* between two calls of dray_service by a thread that sleeps */

/* Start and stop the thread of DRAY_SERVICE_THREAD. Error: -errno. */
int service_start(struct dray_port *port);
void service_stop(struct dray_port *port);

#endif
