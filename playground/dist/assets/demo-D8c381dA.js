import{n as e}from"./dist-Cr6QYUKe.js";var t=e=>document.getElementById(e),n=JSON.parse(t(`settings`).textContent??`{}`),r=sessionStorage.getItem(`buyer`),i=r?JSON.parse(r):{name:n.name??`nobody`,token:n.token??null};i.token&&sessionStorage.setItem(`buyer`,JSON.stringify(i));var a=class extends Error{};async function o(e,t,n=i.token){let r={"content-type":`application/json`,accept:`application/graphql-response+json`};n&&(r.authorization=`Bearer ${n}`);let o=await(await fetch(`/graphql`,{method:`POST`,headers:r,body:JSON.stringify({query:e.toString(),variables:t})})).json();if(o.errors){let[e]=o.errors;throw e.extensions?.code===`UNAUTHENTICATED`&&sessionStorage.removeItem(`buyer`),new a(e.message)}return o.data}function s(t){let n=new URL(`/graphql`,location.href);n.protocol=n.protocol.replace(`http`,`ws`);let r,a=0;return e({url:n.href,keepAlive:5e3,connectionParams:i.token?{authorization:`Bearer ${i.token}`}:{},retryAttempts:1/0,retryWait:e=>new Promise(t=>setTimeout(t,Math.min(500*2**e,8e3)*(.5+Math.random()))),shouldRetry:()=>!0,on:{closed:()=>{clearTimeout(a),t.closed()},connected:e=>{r=e,t.opened()},ping:e=>{e||(a=window.setTimeout(()=>r?.close(4408,`no answer`),5e3))},pong:e=>{e&&clearTimeout(a)}}})}var c=e=>new Intl.NumberFormat(void 0,{style:`currency`,currency:e.currency}).format(Number(e.amount)),l=(e,t)=>new Intl.DateTimeFormat(void 0,{dateStyle:`medium`,timeStyle:`short`,timeZone:t}).format(new Date(e));function u(e,t={},...n){let r=Object.assign(document.createElement(e),t);return r.append(...n),r}function d(e,t={},...n){let r=document.createElementNS(`http://www.w3.org/2000/svg`,e);for(let[e,n]of Object.entries(t))r.setAttribute(e,String(n));return r.append(...n),r}var f=class extends String{__apiType;value;__meta__;constructor(e,t){super(e),this.value=e,this.__meta__=t}toString(){return this.value}},p=new f(`
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}
    `,{fragmentName:`BookingParts`}),ee={"\n  query Search($query: String, $filter: EventFilter) {\n    searchEvents(query: $query, filter: $filter, first: 30) {\n      totalCount\n      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }\n      facets { field buckets { value label count } }\n    }\n  }\n":new f(`
    query Search($query: String, $filter: EventFilter) {
  searchEvents(query: $query, filter: $filter, first: 30) {
    totalCount
    nodes {
      id
      title
      startsAt
      timeZone
      saleStatus
      venue {
        name
        city
      }
      priceRange {
        min {
          amount
          currency
        }
      }
    }
    facets {
      field
      buckets {
        value
        label
        count
      }
    }
  }
}
    `),"\n  query Event($id: ID!) {\n    event(id: $id) {\n      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }\n      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }\n      layout { geometryUrl }\n    }\n  }\n":new f(`
    query Event($id: ID!) {
  event(id: $id) {
    id
    title
    saleStatus
    startsAt
    onSaleAt
    timeZone
    waitingRoomEnabled
    venue {
      name
      city
    }
    priceZones {
      name
      price {
        amount
        currency
      }
    }
    tiers {
      id
      name
      price {
        amount
        currency
      }
      available
    }
    layout {
      geometryUrl
    }
  }
}
    `),"\n  subscription Watch($id: ID!, $after: SeatMapVersion) {\n    seatMapChanged(eventId: $id, afterVersion: $after) {\n      __typename\n      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }\n      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }\n      ... on SeatMapResync { version reason }\n    }\n  }\n":new f(`
    subscription Watch($id: ID!, $after: SeatMapVersion) {
  seatMapChanged(eventId: $id, afterVersion: $after) {
    __typename
    ... on SeatMapSnapshot {
      version
      asOf
      sections {
        name
        statuses
      }
      tiers {
        id
        available
      }
    }
    ... on SeatMapDelta {
      version
      asOf
      changes {
        seatId
        status
      }
      tierChanges {
        tierId
        available
      }
    }
    ... on SeatMapResync {
      version
      reason
    }
  }
}
    `),"\n  mutation Join($id: ID!) {\n    joinWaitingRoom(input: { eventId: $id }) {\n      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }\n      userErrors { message }\n    }\n  }\n":new f(`
    mutation Join($id: ID!) {
  joinWaitingRoom(input: {eventId: $id}) {
    waitingRoom {
      status
      position
      estimatedWaitSeconds
      admissionToken
      pollAfterMs
    }
    userErrors {
      message
    }
  }
}
    `),"\n  query Stand($id: ID!) {\n    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }\n  }\n":new f(`
    query Stand($id: ID!) {
  waitingRoom(eventId: $id) {
    status
    position
    estimatedWaitSeconds
    admissionToken
    pollAfterMs
  }
}
    `),"\n  query Mine($event: ID!) {\n    holds(eventId: $event, status: [ACTIVE], first: 1) {\n      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n    }\n    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }\n  }\n":new f(`
    query Mine($event: ID!) {
  holds(eventId: $event, status: [ACTIVE], first: 1) {
    nodes {
      id
      expiresInSeconds
      total {
        amount
        currency
      }
      items {
        quantity
        seat {
          seatId
        }
        tier {
          name
        }
      }
    }
  }
  bookings(eventId: $event, first: 10) {
    nodes {
      ...BookingParts
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`),"\n  mutation Hold($input: HoldSeatsInput!) {\n    holdSeats(input: $input) {\n      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }\n    }\n  }\n":new f(`
    mutation Hold($input: HoldSeatsInput!) {
  holdSeats(input: $input) {
    hold {
      id
      expiresInSeconds
      total {
        amount
        currency
      }
      items {
        quantity
        seat {
          seatId
        }
        tier {
          name
        }
      }
    }
    userErrors {
      message
      ... on SeatsUnavailableError {
        conflicts {
          seatId
        }
        alternativeSeatIds
      }
    }
  }
}
    `),"\n  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }\n":new f(`
    mutation Release($id: ID!) {
  releaseHold(input: {holdId: $id}) {
    userErrors {
      code
    }
  }
}
    `),"\n  mutation Checkout($input: CheckoutInput!) {\n    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n":new f(`
    mutation Checkout($input: CheckoutInput!) {
  checkout(input: $input) {
    booking {
      ...BookingParts
    }
    userErrors {
      code
      message
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`),"\n  mutation Cancel($input: CancelInput!) {\n    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n":new f(`
    mutation Cancel($input: CancelInput!) {
  cancel(input: $input) {
    booking {
      ...BookingParts
    }
    userErrors {
      code
      message
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`),"\n  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }\n":new f(`
    query Booking($id: ID!) {
  booking(id: $id) {
    ...BookingParts
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`),"\n  fragment BookingParts on Booking {\n    id code status total { amount currency } tickets { id qrSvg } payment { status }\n  }\n":p,"\n  query Sales($id: ID!) {\n    event(id: $id) {\n      sales {\n        asOf capacity sold held gross { amount currency }\n        bySection { name capacity sold gross { amount currency } }\n        byHour { hour sold gross { amount currency } }\n      }\n    }\n  }\n":new f(`
    query Sales($id: ID!) {
  event(id: $id) {
    sales {
      asOf
      capacity
      sold
      held
      gross {
        amount
        currency
      }
      bySection {
        name
        capacity
        sold
        gross {
          amount
          currency
        }
      }
      byHour {
        hour
        sold
        gross {
          amount
          currency
        }
      }
    }
  }
}
    `)};function m(e){return ee[e]??{}}var te=m(`
  query Search($query: String, $filter: EventFilter) {
    searchEvents(query: $query, filter: $filter, first: 30) {
      totalCount
      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }
      facets { field buckets { value label count } }
    }
  }
`),h=m(`
  query Event($id: ID!) {
    event(id: $id) {
      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }
      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }
      layout { geometryUrl }
    }
  }
`),ne=m(`
  subscription Watch($id: ID!, $after: SeatMapVersion) {
    seatMapChanged(eventId: $id, afterVersion: $after) {
      __typename
      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }
      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }
      ... on SeatMapResync { version reason }
    }
  }
`),re=m(`
  mutation Join($id: ID!) {
    joinWaitingRoom(input: { eventId: $id }) {
      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }
      userErrors { message }
    }
  }
`),ie=m(`
  query Stand($id: ID!) {
    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }
  }
`),ae=m(`
  query Mine($event: ID!) {
    holds(eventId: $event, status: [ACTIVE], first: 1) {
      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }
    }
    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }
  }
`),oe=m(`
  mutation Hold($input: HoldSeatsInput!) {
    holdSeats(input: $input) {
      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }
      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }
    }
  }
`),se=m(`
  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }
`),ce=m(`
  mutation Checkout($input: CheckoutInput!) {
    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }
  }
`),le=m(`
  mutation Cancel($input: CancelInput!) {
    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }
  }
`),ue=m(`
  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }
`);m(`
  fragment BookingParts on Booking {
    id code status total { amount currency } tickets { id qrSvg } payment { status }
  }
`);var de=m(`
  query Sales($id: ID!) {
    event(id: $id) {
      sales {
        asOf capacity sold held gross { amount currency }
        bySection { name capacity sold gross { amount currency } }
        byHour { hour sold gross { amount currency } }
      }
    }
  }
`),g=new Set,_=new Map,v=null,y=!1,b=!1,x=0,S=crypto.randomUUID(),C=crypto.randomUUID(),fe=e=>g.has(e)||(v?.items.some(t=>t.seat?.seatId===e)??!1),w=()=>v===null&&!y,T=e=>{t(`message`).textContent=e};function E(){S=crypto.randomUUID(),O()}function D(e,t){e.addEventListener(`click`,async()=>{if(e.getAttribute(`aria-disabled`)!==`true`){e.setAttribute(`aria-disabled`,`true`),T(``);try{await t()}catch(e){T(e instanceof a?e.message:`The server does not answer. Try again: the same key gives the same result.`)}e.removeAttribute(`aria-disabled`),O()}})}function O(){let e=[..._].filter(([,e])=>e>0),n=e=>M?.event()?.tiers.find(t=>t.id===e)?.name,r=v?v.items.map(e=>e.seat?.seatId??`${e.quantity} × ${e.tier?.name}`):[...g,...e.map(([e,t])=>`${t} × ${n(e)}`)];t(`picked`).textContent=r.length?`${r.join(`, `)}${v?`: ${c(v.total)}`:``}`:`Pick seats on the map.`,t(`hold`).hidden=v!==null,t(`hold`).disabled=!r.length||!i.token,t(`pay`).hidden=!v}function k(){let e=[...g,...(v?.items??[]).flatMap(e=>e.seat?.seatId??[])];v=null,g.clear(),_.clear(),M?.redrawTiers(),M?.redraw(e),E()}function pe(){k(),t(`bookings`).replaceChildren(),T(``)}async function me(e){if(!i.token)return;let{holds:t,bookings:n}=await o(ae,{event:e});for(let e of[...n?.nodes??[]].reverse())j(e);v=t?.nodes[0]??null,v&&A(v)}function A(e){x=performance.now()+1e3*e.expiresInSeconds,C=crypto.randomUUID()}async function he(e){if(!e.waitingRoomEnabled)return null;let t=(await o(re,{id:e.id})).joinWaitingRoom;if(t?.userErrors[0])throw new a(t.userErrors[0].message);let n=t?.waitingRoom??null;for(;n?.status===`WAITING`;){let t=n.estimatedWaitSeconds==null?``:`, about ${n.estimatedWaitSeconds} s`;M?.say(`In line: ${n.position}${t}.`);let r=n.pollAfterMs;await new Promise(e=>setTimeout(e,r)),n=(await o(ie,{id:e.id})).waitingRoom??null}if(n?.status===`SOLD_OUT`)throw new a(`Sold out.`);return M?.say(`Live.`),n?.admissionToken??null}async function ge(e){let n=[..._].filter(([,e])=>e>0).map(([e,t])=>({tierId:e,quantity:t})),r={eventId:e.id,idempotencyKey:S,seatIds:[...g],admissions:n,admissionToken:await he(e)};y=!0;let i=(await o(oe,{input:r}).finally(()=>{y=!1})).holdSeats,s=i?.userErrors[0];if(!s){v=i?.hold??null,v&&A(v),M?.redraw(g),O(),t(`checkout`).focus();return}if(S=crypto.randomUUID(),!(`conflicts`in s))throw new a(s.message);for(let{seatId:e}of s.conflicts)e&&g.delete(e)&&(M?.shake(e),M?.redraw([e]));let c=s.alternativeSeatIds??[];if(!c.length)throw new a(s.message);let l=[...g];throw g.clear(),c.forEach(e=>g.add(e)),M?.redraw([...l,...g]),new a(`${s.message}. These are like them: ${c.join(`, `)}.`)}async function _e(){if(!v)return;let e=t(`method`).value,n=(await o(ce,{input:{holdId:v.id,idempotencyKey:`${C}-${e}`,paymentMethod:e,returnUrl:location.href}})).checkout;if(n?.userErrors[0])throw C=crypto.randomUUID(),new a(n.userErrors[0].message);n?.booking&&j(n.booking).focus(),k()}function j(e){let n=u(`article`,{tabIndex:-1});t(`bookings`).prepend(n);let r=u(`button`,{type:`button`},`Cancel`),i=crypto.randomUUID();D(r,async()=>{let t=(await o(le,{input:{bookingId:e.id,idempotencyKey:i}})).cancel;if(t?.userErrors[0])throw new a(t.userErrors[0].message);t?.booking&&(e=t.booking,s(),d())});let s=()=>{let t=e.status.toLowerCase().replaceAll(`_`,` `),i=e.tickets.map((e,t)=>u(`img`,{src:`data:image/svg+xml,${encodeURIComponent(e.qrSvg)}`,alt:`QR code of ticket ${t+1}`}));r.hidden=e.status!==`CONFIRMED`,n.replaceChildren(u(`h3`,{},`${e.code}: ${t}, ${c(e.total)}`),...i,r)},l=()=>[`PAYMENT_PENDING`,`CANCELLING`,`REFUND_REQUIRED`].includes(e.status)||e.status===`CANCELLED`&&Number(e.total.amount)>0||e.status===`CONFIRMED`&&!e.tickets.length,d=async()=>{for(let t=0;l()&&t<120;t++){await new Promise(e=>setTimeout(e,500));let t=(await o(ue,{id:e.id}).catch(()=>null))?.booking;t&&(e=t,s())}};return s(),d(),n}var M=null;function ve(e){M=e,D(t(`hold`),async()=>{let t=e.event();t&&await ge(t)}),D(t(`release`),async()=>{v&&await o(se,{id:v.id}),k(),t(`map`)?.querySelector(`[tabindex='0']`)?.focus()}),D(t(`checkout`),async()=>{b=!0,await _e().finally(()=>{b=!1})}),setInterval(()=>{if(!v||b)return;let e=Math.max(0,Math.ceil((x-performance.now())/1e3));t(`left`).textContent=`${Math.floor(e/60)}:${String(e%60).padStart(2,`0`)}`,e===0&&(T(`The hold ran out. Pick seats again.`),k())},250)}var N=[[`CATEGORY`,`Category`,`categories`],[`CITY`,`City`,`cities`],[`SALE_STATUS`,`Sale`,`saleStatus`]],ye=6,P={categories:new Set,cities:new Set,saleStatus:new Set},F=0;async function I(e){let n=++F,r={};for(let[,,e]of N)P[e].size&&(r[e]=[...P[e]]);try{let{searchEvents:i}=await o(te,{query:t(`query`).value||null,filter:r});if(n!==F||!i)return;t(`found`).textContent=i.totalCount===1?`1 event`:`${i.totalCount} events`,t(`events`).replaceChildren(...i.nodes.map(t=>{let n=t.priceRange?`, from ${c(t.priceRange.min)}`:``,r=`${l(t.startsAt,t.timeZone)}, ${t.venue.name}, ${t.venue.city}${n}`,i=u(`button`,{type:`button`},t.title,u(`small`,{},r));return i.addEventListener(`click`,()=>e(t.id)),u(`li`,{},i)})),be(i.facets??[],()=>void I(e))}catch(e){n===F&&(t(`found`).textContent=e instanceof a?e.message:`The server does not answer.`)}}function be(e,n){let r=document.activeElement?.id;t(`facets`).replaceChildren(...N.flatMap(([t,r,i])=>{let a=P[i],o=(e.find(e=>e.field===t)?.buckets??[]).filter((e,t)=>t<ye||a.has(e.value)),s=[...a].filter(e=>!o.some(t=>t.value===e)).map(e=>({value:e,label:e,count:0}));return!o.length&&!s.length?[]:u(`fieldset`,{},u(`legend`,{},r),...[...o,...s].map(({value:e,label:r,count:i})=>{let o=u(`input`,{type:`checkbox`,checked:a.has(e),id:`facet-${t}-${e}`});return o.addEventListener(`change`,()=>{o.checked?a.add(e):a.delete(e),n()}),u(`label`,{},o,` ${r.replaceAll(`_`,` `).toLowerCase()} (${i})`)}))})),r?.startsWith(`facet-`)&&document.getElementById(r)?.focus()}function xe(e){let n=0,r=()=>void I(e);t(`search`).addEventListener(`submit`,e=>{e.preventDefault(),r()}),t(`query`).addEventListener(`input`,()=>{clearTimeout(n),n=window.setTimeout(r,150)}),r()}function Se(e,t){let n=null,r=null,i=!1,a=s({opened:()=>t.state(!0,r),closed:()=>{i||t.state(!1,r)}}),o=()=>{i||a.subscribe({query:ne.toString(),variables:{id:e,get after(){return n}}},{next:({data:e,errors:i})=>{if(i?.[0]&&t.failed(i[0].message),!e)return;let a=e.seatMapChanged;n=a.version,`asOf`in a&&(r=a.asOf),t.update(a)},error:e=>{Array.isArray(e)&&t.failed(e[0]?.message??`The map can't be watched.`),setTimeout(o,5e3)},complete:()=>setTimeout(o,500)})};o();let c=()=>{i||t.state(!1,r)};return addEventListener(`offline`,c),()=>{i=!0,removeEventListener(`offline`,c),a.dispose()}}var Ce=class e{seats=[];sections=[];box;letters;known=!1;#e=new Map;constructor(e){let t=12/we(e);for(let{name:n,seats:r}of e.sections){let e=this.seats.length;for(let e of r)this.seats.push({...e,x:e.x*t,y:e.y*t,section:this.sections.length});let i=this.seats.slice(e);this.sections.push({name:n,first:e,end:this.seats.length,box:L(i),hull:Te(i)})}this.seats.forEach((e,t)=>this.#e.set(e.seatId,t)),this.letters=Array(this.seats.length).fill(`B`),this.box=L(this.seats)}static async load(t){return new e(await(await fetch(t)).json())}number(e){return this.#e.get(e)}free(e){let t=0;for(let n=e.first;n<e.end;n++)this.letters[n]===`A`&&t++;return t}towards(e,t,n,r){let i=this.seats[e],a=null,o=1/0;if(!i)return a;for(let{first:e,end:s}of r)for(let r=e;r<s;r++){let e=this.seats[r],s=(e.x-i.x)*t+(e.y-i.y)*n,c=Math.abs((e.x-i.x)*n)+Math.abs((e.y-i.y)*t);s>0&&s+3*c<o&&(a=r,o=s+3*c)}return a}at(e,t){let n=null,r=(12*.6)**2;for(let{first:i,end:a,box:o}of this.sections)if(!(e<o.x||t<o.y||e>o.x+o.w||t>o.y+o.h))for(let o=i;o<a;o++){let i=this.seats[o],a=(i.x-e)**2+(i.y-t)**2;a<r&&(n=o,r=a)}return n}};function we(e){let t=[];for(let{seats:n}of e.sections)for(let e=1;e<n.length;e++){let[r,i]=[n[e-1],n[e]],a=Math.hypot(i.x-r.x,i.y-r.y);r.row===i.row&&a>0&&t.push(a)}return t.sort((e,t)=>e-t),t[t.length>>1]??1}function L(e){let[t,n,r,i]=[1/0,1/0,-1/0,-1/0];for(let{x:a,y:o}of e)t=Math.min(t,a),r=Math.max(r,a),n=Math.min(n,o),i=Math.max(i,o);return e.length?{x:t-12,y:n-12,w:r-t+24,h:i-n+24}:{x:0,y:0,w:1,h:1}}function Te(e){let t=e.map(({x:e,y:t})=>[e,t]).sort((e,t)=>e[0]-t[0]||e[1]-t[1]),n=e=>{let t=[];for(let n of e){for(;;){let[e,r]=[t.at(-2),t.at(-1)];if(!e||!r||(r[0]-e[0])*(n[1]-e[1])-(r[1]-e[1])*(n[0]-e[0])>0)break;t.pop()}t.push(n)}return t.slice(0,-1)},r=[...n(t),...n(t.reverse())];return r.length?r:t}var Ee=2500;function De(e){let r=()=>!t(`sales`).hidden,i=0,a=async()=>{i=0;let a=e();if(r()&&a&&n.organizer)try{let e=(await o(de,{id:a},n.organizer)).event?.sales;t(`sales-state`).textContent=e?Oe(e):`This is another organizer's event.`,B(t(`by-section`),`Sold by section`,e?ke(e):[]),B(t(`by-hour`),`Sold by hour`,e?Ae(e):[])}catch{t(`sales-state`).textContent=`The figures can't be read now.`}},s=()=>{r()&&!i&&(i=window.setTimeout(a,Ee))},c=t(`organize`);return c.hidden=!n.organizer,c.addEventListener(`click`,()=>{t(`sales`).hidden=r(),c.setAttribute(`aria-expanded`,String(r())),a()}),s}var Oe=e=>`${e.sold} of ${e.capacity} sold, ${e.held} held, ${c(e.gross)}; as of ${new Date(e.asOf).toLocaleTimeString()}.`,ke=e=>e.bySection.map(({name:e,sold:t,capacity:n,gross:r})=>({name:e,value:t,of:n,says:`${e}: ${t} of ${n}, ${c(r)}`}));function Ae(e){let t=e.byHour.slice(-24),n=Math.max(1,...t.map(({sold:e})=>e));return t.map(({hour:e,sold:t,gross:r})=>{let i=new Intl.DateTimeFormat(void 0,{hour:`numeric`,day:`numeric`,month:`short`}).format(new Date(e));return{name:i,value:t,of:n,says:`${i}: ${t}, ${c(r)}`}})}var R=18,z=240;function B(e,t,n){let r=d(`svg`,{role:`img`,"aria-label":`${t}: ${n.map(({says:e})=>e).join(`; `)||`nothing yet`}`,viewBox:`0 0 ${z} ${Math.max(1,n.length)*R}`});n.forEach(({name:e,value:t,of:n,says:i},a)=>{let o=d(`title`);o.textContent=i;let s=d(`text`,{x:4,y:a*R+12});s.textContent=`${e}: ${t}`,r.append(d(`g`,{},o,d(`rect`,{class:`of`,x:0,y:a*R+1,width:z,height:15}),d(`rect`,{class:`value`,x:0,y:a*R+1,width:z*t/Math.max(1,n),height:15}),s))}),e.replaceChildren(u(`h3`,{},t),r)}var V=class{element;whole;moved;view;#e=new Map;dragged=!1;constructor(e,t,n){this.element=e,this.whole=t,this.moved=n,this.view={...t},e.addEventListener(`wheel`,e=>{let{deltaY:t,clientX:n,clientY:r}=e;e.preventDefault(),this.zoom(Math.exp(-t/400),n,r)},{passive:!1}),e.addEventListener(`pointerdown`,e=>this.#t(e)),e.addEventListener(`pointermove`,e=>this.#n(e));for(let t of[`pointerup`,`pointercancel`,`pointerleave`])e.addEventListener(t,e=>this.#e.delete(e.pointerId))}get scale(){let{width:e,height:t}=this.element.getBoundingClientRect(),n=Math.min(e/this.view.w,t/this.view.h);return{scale:n,left:(e-this.view.w*n)/2-this.view.x*n,top:(t-this.view.h*n)/2-this.view.y*n}}at(e,t){let n=this.element.getBoundingClientRect(),{scale:r,left:i,top:a}=this.scale;return[(e-n.left-i)/r,(t-n.top-a)/r]}zoom(e,t,n){let r=this.element.getBoundingClientRect(),[i,a]=this.at(t??r.left+r.width/2,n??r.top+r.height/2),{w:o}=this.view,s=Math.max(60,Math.min(this.whole.w,o/e)),c=s/o;this.show({x:i-(i-this.view.x)*c,y:a-(a-this.view.y)*c,w:s,h:this.view.h*c})}show(e){this.view={...e},this.element.style.touchAction=this.view.w<this.whole.w*.99?`none`:`pan-y`,this.moved()}reveal(e,t){let{view:n}=this,r=(e,t,n)=>Math.max(e-n*.9,Math.min(e-n*.1,t));this.show({...n,x:r(e,n.x,n.w),y:r(t,n.y,n.h)})}#t(e){this.#e.size===0&&(this.dragged=!1),this.#e.set(e.pointerId,{x:e.clientX,y:e.clientY})}#n(e){let t=this.#e.get(e.pointerId);if(!t)return;let n={x:e.clientX,y:e.clientY},[r,i]=[...this.#e.entries()];if(r&&i){let a=(r[0]===e.pointerId?i:r)[1],o=e=>Math.hypot(e.x-a.x,e.y-a.y);this.dragged=!0,this.zoom(o(n)/Math.max(1,o(t)),(n.x+a.x)/2,(n.y+a.y)/2)}else{let r=Math.hypot(n.x-t.x,n.y-t.y);if(!this.dragged&&r<5)return;this.dragged=!0,this.element.setPointerCapture(e.pointerId);let{scale:i}=this.scale;this.show({...this.view,x:this.view.x-(n.x-t.x)/i,y:this.view.y-(n.y-t.y)/i})}this.#e.set(e.pointerId,n)}},je=5e3,Me=(e,t)=>e.seats.length>je?new Re(e,t):new Ne(e,t);function H(e,t,n){let r=n.shown(t);e.setAttribute(`data-letter`,r),e.setAttribute(`aria-pressed`,String(r===`M`)),e.setAttribute(`aria-disabled`,String(r!==`A`&&r!==`M`)),e.setAttribute(`aria-label`,n.describe(t))}function U(e,t,n,r,i,a){let o=e=>{let n=e.target.closest(`[data-seat]`)?.getAttribute(`data-seat`);return n?t.number(n):void 0};e.addEventListener(`keydown`,e=>{let{key:a}=e,s=o(e);if(s===void 0)return;if(a===` `||a===`Enter`)return e.preventDefault(),n.pick(s);let[c,l]={ArrowLeft:[-1,0],ArrowRight:[1,0],ArrowUp:[0,-1],ArrowDown:[0,1]}[a]??[0,0];if(!c&&!l)return;e.preventDefault();let u=t.towards(s,c,l,r()),d=u===null?void 0:i.get(u);d&&(i.get(s)?.setAttribute(`tabindex`,`-1`),d.setAttribute(`tabindex`,`0`),d.focus({preventScroll:!0}))}),e.addEventListener(`focusin`,e=>{let t=o(e);t!==void 0&&a(t)})}var Ne=class{plan;host;element;camera;#e=new Map;#t=new Map;constructor(e,t){this.plan=e,this.host=t,this.element=d(`svg`,{id:`map`,role:`group`,"aria-label":`Seat map; arrow keys move, space picks`}),e.seats.forEach((e,t)=>{let n=d(`g`,{transform:`translate(${e.x} ${e.y})`,"data-seat":e.seatId,role:`button`,tabindex:t===0?0:-1},d(`use`));this.#e.set(t,n)}),this.element.append(...this.#e.values()),this.camera=new V(this.element,e.box,()=>{let{x:e,y:t,w:n,h:r}=this.camera.view;this.element.setAttribute(`viewBox`,`${e} ${t} ${n} ${r}`)}),this.element.style.aspectRatio=`${e.box.w} / ${e.box.h}`,this.camera.show(e.box),this.element.addEventListener(`click`,n=>{let r=n.target.closest(`[data-seat]`)?.dataset.seat,i=r===void 0?void 0:e.number(r);i!==void 0&&!this.camera.dragged&&t.pick(i)}),U(this.element,e,t,()=>e.sections,this.#e,t=>{let{x:n,y:r}=e.seats[t];this.camera.view.w<e.box.w&&this.camera.reveal(n,r)}),this.updateAll()}update(e){for(let t of e){let e=this.#e.get(t),n=this.host.shown(t);!e||this.#t.get(t)===n&&n!==`M`||(this.#t.set(t,n),e.firstElementChild?.setAttribute(`href`,`#s-${n}`),H(e,t,this.host))}}updateAll(){this.update(this.#e.keys())}shake(e){let t=this.#e.get(e);t?.classList.add(`shaken`),setTimeout(()=>t?.classList.remove(`shaken`),500)}enter(e){let t=this.plan.sections[e]?.box;t&&this.camera.show(t)}end(){}},W=2.5,Pe=10,Fe={A:`free`,H:`held`,S:`gone`,B:`gone`,M:`mine`},Ie={A:4.5,H:3,S:1.5,B:1.5,M:4.5},Le=500,Re=class{plan;host;element;camera;#e;#t=document.createElement(`canvas`);#n=new Map;#r;#i=new Map;#a;#o=matchMedia(`(prefers-color-scheme: dark)`);#s=-1;#c=-1;#l=!1;#u={};constructor(e,t){this.plan=e,this.host=t,this.element=u(`canvas`,{id:`map`}),this.element.setAttribute(`role`,`group`),this.element.setAttribute(`aria-label`,`Seat map. Choose a section; arrow keys move among its seats, space picks`),this.#e=this.element.getContext(`2d`),this.#r=e.sections.map(t=>e.free(t)),this.camera=new V(this.element,e.box,()=>this.#p()),this.element.style.aspectRatio=`${e.box.w} / ${e.box.h}`,this.camera.show(e.box),this.element.addEventListener(`click`,e=>{e.target===this.element&&!this.camera.dragged&&this.#d(...this.camera.at(e.clientX,e.clientY))}),U(this.element,e,t,()=>this.#s<0?[]:[e.sections[this.#s]],this.#n,t=>{this.#c=t;let{x:n,y:r}=e.seats[t];this.camera.reveal(n,r)}),this.element.addEventListener(`focusout`,()=>{this.#c=-1,this.#p()}),this.#a=new ResizeObserver(()=>this.#p()),this.#a.observe(this.element),this.#o.onchange=()=>{this.#u={},this.#p()},e.sections.length===1&&this.enter(0)}update(e){let t=new Set;for(let n of e){t.add(this.plan.seats[n].section);let e=this.#n.get(n);e&&H(e,n,this.host)}for(let e of t)this.#r[e]=this.plan.free(this.plan.sections[e]);this.#p()}updateAll(){this.plan.sections.forEach((e,t)=>{this.#r[t]=this.plan.free(e)});for(let[e,t]of this.#n)H(t,e,this.host);this.#p()}shake(e){this.#i.set(e,performance.now()),this.#p()}enter(e){let t=this.plan.sections[e];if(t&&(this.camera.show(t.box),e!==this.#s)){this.#s=e,this.#n.clear();for(let e=t.first;e<t.end;e++){let n=u(`button`,{type:`button`,tabIndex:e===t.first?0:-1});n.dataset.seat=this.plan.seats[e].seatId,H(n,e,this.host),this.#n.set(e,n)}this.element.replaceChildren(...this.#n.values()),this.host.entered(e)}}end(){this.#a.disconnect(),this.#o.onchange=null}#d(e,t){if(12*this.camera.scale.scale>=W*2){let n=this.plan.at(e,t);return n===null?void 0:(this.plan.seats[n].section!==this.#s&&this.#f(this.plan.seats[n].section),this.host.pick(n))}let n=({x:n,y:r,w:i,h:a})=>e>=n&&t>=r&&e<=n+i&&t<=r+a,r=this.plan.sections.findIndex(({box:r,hull:i})=>n(r)&&Ve(i,e,t));r>=0&&this.enter(r)}#f(e){let{view:t}=this.camera;this.enter(e),this.camera.show(t)}#p(){this.#l||(this.#l=!0,requestAnimationFrame(()=>{this.#l=!1,this.#g()}))}#m(e){return this.#u[e]||(this.element.style.color=`var(--${e})`,this.#u[e]=getComputedStyle(this.element).color)}#h(e){let[t=0,n=0,r=0]=(this.#m(e).match(/[\d.]+/g)??[]).map(Number);return(255<<24|r<<16|n<<8|t)>>>0}#g(){let{element:e}=this,t=this.#e,{width:n,height:r}=e.getBoundingClientRect(),i=devicePixelRatio;(e.width!==Math.round(n*i)||e.height!==Math.round(r*i))&&(e.width=Math.round(n*i),e.height=Math.round(r*i));let{scale:a,left:o,top:s}=this.camera.scale;t.setTransform(i,0,0,i,0,0),t.clearRect(0,0,n,r),t.setTransform(a*i,0,0,a*i,o*i,s*i);let c={x:-o/a,y:-s/a,w:n/a,h:r/a},l=12*a,u=this.plan.sections.map((e,t)=>({section:e,number:t})).filter(({section:e})=>Be(e.box,c));for(let{section:e,number:t}of u)this.#_(e,t,l);if(l>=W&&this.#y(u.map(({section:e})=>e),c,l),l<Pe)for(let{section:e,number:t}of u)this.#v(e,t,a);this.#S()}#_({hull:e,first:t,end:n},r,i){let a=this.#e;a.beginPath(),e.forEach(([e,t],n)=>n?a.lineTo(e,t):a.moveTo(e,t)),a.closePath(),a.lineJoin=`round`,a.lineWidth=12,a.strokeStyle=a.fillStyle=this.#m(`line`),a.globalAlpha=i<W?1:.25,a.stroke(),a.fill(),i<W&&this.plan.known&&(a.globalAlpha=.15+.75*(this.#r[r]/Math.max(1,n-t)),a.fillStyle=this.#m(`free`),a.fill()),a.globalAlpha=1}#v({name:e,box:t,first:n,end:r},i,a){let o=12/a,s=this.plan.known?`${e}: ${this.#r[i]}`:e,c=this.#e;c.font=`${o}px system-ui, sans-serif`,r===n||c.measureText(s).width>t.w*1.1||o>t.h||(c.textAlign=`center`,c.textBaseline=`middle`,c.lineWidth=o/4,c.strokeStyle=this.#m(`paper`),c.fillStyle=this.#m(`ink`),c.strokeText(s,t.x+t.w/2,t.y+t.h/2),c.fillText(s,t.x+t.w/2,t.y+t.h/2))}#y(e,t,n){let r=n<Pe?this.#b():this.#x();for(let{first:n,end:i}of e)for(let e=n;e<i;e++){let{x:n,y:i}=this.plan.seats[e];n<t.x-12||i<t.y-12||n>t.x+t.w+12||i>t.y+t.h+12||r.seat(this.host.shown(e),n,i)}r.end()}#b(){let e=this.#e,{width:t,height:n}=this.element,r=this.#t;(r.width!==t||r.height!==n)&&([r.width,r.height]=[t,n]);let i=new ImageData(t,n),a=new Uint32Array(i.data.buffer),{scale:o,left:s,top:c}=this.camera.scale,l=devicePixelRatio,u=Object.fromEntries(Object.entries(Fe).map(([e,t])=>[e,this.#h(t)]));return{seat:(e,r,i)=>{let d=Math.max(1,Math.round(2*Ie[e]*o*l)),f=Math.round((r*o+s)*l-d/2),p=Math.round((i*o+c)*l-d/2);for(let r=Math.max(0,p);r<Math.min(n,p+d);r++){let n=r*t;a.fill(u[e],n+Math.max(0,Math.min(t,f)),n+Math.max(0,Math.min(t,f+d)))}},end:()=>{r.getContext(`2d`).putImageData(i,0,0),e.save(),e.setTransform(1,0,0,1,0,0),e.drawImage(r,0,0),e.restore()}}}#x(){let e=this.#e,{scale:t}=this.camera.scale,n=Math.ceil(12*t*devicePixelRatio),r=n/t/devicePixelRatio,i=Object.fromEntries(Object.entries(Fe).map(([e,i])=>{let a=new OffscreenCanvas(n,n),o=a.getContext(`2d`);return o.scale(t*devicePixelRatio,t*devicePixelRatio),o.translate(r/2,r/2),o.fillStyle=o.strokeStyle=this.#m(i),o.lineWidth=1.4,o.beginPath(),ze(o,e),(e===`A`||e===`M`)&&o.fill(),o.stroke(),[e,a]}));return{seat:(t,n,a)=>e.drawImage(i[t],n-r/2,a-r/2,r,r),end:()=>{}}}#S(){let e=this.#e,t=performance.now();if(this.#c>=0){let{x:t,y:n}=this.plan.seats[this.#c];e.strokeStyle=this.#m(`mine`),e.lineWidth=2,e.strokeRect(t-6,n-6,12,12)}let n=matchMedia(`(prefers-reduced-motion: reduce)`).matches;for(let[r,i]of this.#i){if(t-i>Le){this.#i.delete(r);continue}let{x:a,y:o}=this.plan.seats[r];e.strokeStyle=this.#m(`alarm`),e.lineWidth=2,e.beginPath(),e.arc(a+(n?0:3*Math.sin((t-i)/30)),o,6,0,7),e.stroke()}this.#i.size&&this.#p()}};function ze(e,t){t===`A`||t===`M`?e.arc(0,0,t===`M`?5:4.2,0,7):t===`H`?(e.moveTo(0,-4.6),e.lineTo(4.6,0),e.lineTo(0,4.6),e.lineTo(-4.6,0),e.closePath()):t===`S`?(e.moveTo(-3.6,-3.6),e.lineTo(3.6,3.6),e.moveTo(3.6,-3.6),e.lineTo(-3.6,3.6)):(e.moveTo(-3,0),e.lineTo(3,0))}var Be=(e,t)=>e.x<t.x+t.w&&t.x<e.x+e.w&&e.y<t.y+t.h&&t.y<e.y+e.h;function Ve(e,t,n){return e.every(([r,i],a)=>{let[o,s]=e[(a+1)%e.length],c=Math.hypot(o-r,s-i)||1;return((o-r)*(n-i)-(s-i)*(t-r))/c>=-12})}var G=null,K=null,q=null,He=null,J=0;t(`who`).textContent=i.token?`You are ${i.name}.`:`Read only: this server gives out no tokens for trying things.`;var Y=(e,n=!1)=>{t(`state`).textContent!==e&&(t(`state`).textContent=e),t(`state`).toggleAttribute(`data-alarm`,n)},X=e=>[...e].flatMap(e=>K?.number(e)??[]);async function Ue(e){let n=++J;He?.(),q?.end(),G=q=K=null,pe();let r=(await o(h,{id:e})).event??null;if(n!==J)return;if(G=r,t(`event`).hidden=t(`basket`).hidden=!G,!G)return Y(`There is no such event.`,!0);t(`title`).textContent=G.title,t(`place`).textContent=`${G.venue.name}, ${G.venue.city}, ${l(G.startsAt,G.timeZone)}`;let[i]=await Promise.all([G.layout?Ce.load(G.layout.geometryUrl):null,me(e)]);if(n!==J)return;K=i;for(let e of[`map-tools`,`legend`])t(e).toggleAttribute(`hidden`,!K);t(`map`)?.remove(),K&&(q=Me(K,{shown:We,describe:Ke,pick:qe,entered:e=>{t(`sections`).value=String(e)}}),t(`map-tools`).after(q.element),Je(K)),Ye(),O();let a=Date.parse(G.onSaleAt)-Date.now();a>0&&a<2**31&&setTimeout(()=>{n===J&&Z()},a+500),He=Se(G.id,{update:Ze,state:(e,t)=>{e&&t&&Z();let n=t?` What you see is of ${new Date(t).toLocaleTimeString()}.`:``;e?Q():Y(`Connection lost, reconnecting.${n}`,!0)},failed:e=>Y(e,!0)})}async function Z(){let e=J,t=G&&(await o(h,{id:G.id}).catch(()=>null))?.event;t&&G&&e===J&&(G.saleStatus=t.saleStatus,Q())}function We(e){return fe(K.seats[e].seatId)?`M`:K.letters[e]}var Ge={A:`available`,H:`held`,S:`sold`,B:`not for sale`,M:`picked by you`};function Ke(e){let t=K.seats[e],n=G?.priceZones.find(e=>e.name===t.zone),r=K.sections.length>1&&K.sections[t.section].name,i=We(e),a=i===`M`&&!w()?`yours`:Ge[i];return[r,`row ${t.row}`,`seat ${t.number}`,n&&c(n.price),t.accessible&&`wheelchair`,a].filter(Boolean).join(`, `)}function qe(e){let t=K.seats[e];w()&&(K.letters[e]===`A`||g.has(t.seatId))&&(g.delete(t.seatId)||g.add(t.seatId),q?.update([e]),E())}function Je({sections:e}){let n=t(`sections`);t(`sections-label`).hidden=e.length<2,n.replaceChildren(new Option(`the whole plan`,``),...e.map(({name:e},t)=>new Option(e,String(t))))}function Ye(){t(`tiers`).replaceChildren(...(G?.tiers??[]).map(e=>{let t=u(`input`,{type:`number`,min:`0`,max:`20`,value:String(_.get(e.id)??0)});t.addEventListener(`input`,()=>{_.set(e.id,Math.max(0,Math.trunc(t.valueAsNumber||0))),E()});let n=u(`span`,{},` of ${e.available} left`);return u(`label`,{},`${e.name}, ${c(e.price)} `,t,n)}))}var Xe={SCHEDULED:`The sale has not begun.`,PAUSED:`The sale is paused.`,ENDED:`The sale is over.`,CANCELLED:`This event was called off.`};function Q(){if(!G)return;let e=G.tiers.every(({available:e})=>e===0)&&!K?.letters.includes(`A`)&&(K?.letters.some(e=>e!==`B`)||G.tiers.length>0);Y(Xe[G.saleStatus]??(e?`Live. Sold out for now: what others give back shows up here.`:`Live.`))}function Ze(e){if(e.__typename===`SeatMapSnapshot`){for(let{name:t,statuses:n}of e.sections){let e=K?.sections.find(e=>e.name===t);if(e)for(let t=0;t<n.length;t++)K.letters[e.first+t]=n[t]}K&&(K.known=!0),Qe(),$e(e.tiers),q?.updateAll()}else if(e.__typename===`SeatMapDelta`){for(let{seatId:t,status:n}of e.changes){let e=K?.number(t);e!==void 0&&(K.letters[e]=n[0])}Qe(),q?.update(X(e.changes.map(({seatId:e})=>e))),$e(e.tierChanges.map(({tierId:e,available:t})=>({id:e,available:t}))),et(e),tt()}!t(`state`).hasAttribute(`data-alarm`)&&!t(`state`).textContent?.startsWith(`In line`)&&Q()}function Qe(){if(K&&w())for(let e of[...g]){let t=K.number(e);t!==void 0&&K.letters[t]!==`A`&&(g.delete(e),q?.update([t]),q?.shake(t),T(`Somebody else was faster: ${e} is gone.`),E())}}function $e(e){for(let{id:n,available:r}of e){let e=G?.tiers.findIndex(e=>e.id===n)??-1;if(e<0)continue;G.tiers[e].available=r;let i=t(`tiers`).children[e]?.querySelector(`span`);i&&(i.textContent=` of ${r} left`)}}function et(e){let n=[...e.changes.map(({seatId:e,status:t})=>`${e} ${t}`),...e.tierChanges.map(({available:e})=>`${e} left`)],r=n.length>12?`, and ${n.length-12} more`:``;for(t(`deltas`).prepend(u(`li`,{},`${Math.max(0,Date.now()-Date.parse(e.asOf))} ms: ${n.slice(0,12).join(`, `)}${r}`));t(`deltas`).childElementCount>50;)t(`deltas`).lastElementChild?.remove()}var tt=De(()=>G?.id??null);ve({event:()=>G,redraw:e=>q?.update(X(e)),shake:e=>X([e]).forEach(e=>q?.shake(e)),say:Y,redrawTiers:Ye}),t(`sections`).addEventListener(`change`,()=>{let{value:e}=t(`sections`);e===``?q?.camera.show(q.camera.whole):q?.enter(Number(e))}),t(`nearer`).addEventListener(`click`,()=>q?.camera.zoom(1.6)),t(`further`).addEventListener(`click`,()=>q?.camera.zoom(1/1.6)),t(`whole`).addEventListener(`click`,()=>{q&&(q.camera.show(q.camera.whole),t(`sections`).value=``)}),t(`second`).addEventListener(`click`,()=>window.open(location.href,`_blank`,`noopener`)),xe(e=>{history.pushState(null,``,`?event=${e}`),$()}),addEventListener(`popstate`,()=>void $());async function $(){let e=new URLSearchParams(location.search).get(`event`)??n.event;if(e)try{await Ue(e)}catch{Y(`The event can't be shown now.`,!0)}}$();