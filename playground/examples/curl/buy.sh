#!/bin/sh
# Buys the best two seats of an event with curl alone, and gives them back.
#   PARTERRE_TOKEN=$(./dev token buyer ada) playground/examples/curl/buy.sh
set -eu
url=${PARTERRE_URL:-http://127.0.0.1:8000}/graphql
: "${PARTERRE_TOKEN:?set it: ./dev token buyer ada}"

# Sends a document with variables and prints the answer.
ask() {
    curl --silent --show-error --fail-with-body "$url" \
        --header "Authorization: Bearer $PARTERRE_TOKEN" --header 'Content-Type: application/json' \
        --data "{\"query\":\"$1\",\"variables\":$2}"
    echo
}

# The first value of a field, enough for ids; a program would use a JSON parser.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }

event=${PARTERRE_EVENT:-$(ask '{ searchEvents(filter: { saleStatus: [ON_SALE] }, first: 1) { nodes { id } } }' '{}' | field id)}
echo "event $event"

# The same key gives the same hold, however often it is sent.
key=$(date +%s)-$$
held=$(ask 'mutation($event: ID!, $key: String!) { holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) { hold { id items { seat { seatId } } } userErrors { code message } } }' \
    "{\"event\":\"$event\",\"key\":\"$key\"}")
echo "$held"
hold=$(echo "$held" | field id)

paid=$(ask 'mutation($hold: ID!, $key: String!) { checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: \"pm_card_visa\" }) { booking { id code status } userErrors { code message } } }' \
    "{\"hold\":\"$hold\",\"key\":\"$key\"}")
echo "$paid"
booking=$(echo "$paid" | field id)

ask 'mutation($booking: ID!, $key: String!) { cancel(input: { bookingId: $booking, idempotencyKey: $key }) { booking { status refunds { status amount { amount } } } userErrors { code message } } }' \
    "{\"booking\":\"$booking\",\"key\":\"$key\"}"
